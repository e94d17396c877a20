#!/bin/sh
# need.sh PACKAGE... : makes sure that each Debian package's tool or header is there; installs what is missing if it can.
# PYTHON names the interpreter that python3-venv and python3-dev are asked of.
set -eu
PYTHON=${PYTHON:-python3}

present() {
  case $1 in
    g++) command -v g++ ;;
    cmake) command -v cmake ;;
    ninja-build) command -v ninja ;;
    pkg-config) command -v pkg-config ;;
    qemu-user) command -v qemu-x86_64 ;;
    python3-venv) "$PYTHON" -c 'import ensurepip, venv' ;;
    python3-dev) test -f "$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h" ;;
    libhwy-dev) find /usr/include /usr/local/include -path '*/hwy/highway.h' | grep . ;;
    libsleef-dev) find /usr/include /usr/local/include -name sleef.h | grep . ;;
    libeigen3-dev) find /usr/include /usr/local/include -path '*/Eigen/Core' | grep . ;;
    libgtest-dev) find /usr/include /usr/local/include -path '*/gtest/gtest.h' | grep . ;;
    *) echo "need.sh: no check for $1" >&2; exit 2 ;;
  esac >/dev/null 2>&1
}

missing=""
for package in "$@"; do
  present "$package" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "installing$missing"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
else
  echo "missing:$missing. Install them (Debian names), e.g.: sudo apt-get install$missing" >&2
  exit 1
fi
