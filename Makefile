# The few commands people type. Each installs what it misses and says what it does; `make help` lists them.

PYTHON ?= python3
JOBS ?= $(shell nproc)
VENV := .venv
BIN := $(VENV)/bin
# Python's tag, e.g. cpython-311: objects of several Python versions lie side by side.
TAG := $(shell $(PYTHON) -c 'import sys; print(sys.implementation.cache_tag)')
BUILD := build/cmake/$(TAG)
TREE := build/python
DEMO := build/demo
ORACLE := build/oracle
UPSTREAM := $(shell sed -n 's/^version = "\(.*\)"/\1/p' upstream.toml)
RUN := PYTHONPATH=$(TREE) $(BIN)/python
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore

say = @printf '\n== %s\n' "$(1)"

.PHONY: help
help:
	@sed -n 's/^## //p' Makefile

# --- what the other targets need ---

.PHONY: system system-test
system:
	@PYTHON='$(PYTHON)' cmake/need.sh g++ cmake ninja-build pkg-config python3-venv python3-dev libhwy-dev libsleef-dev libeigen3-dev
system-test: system
	@cmake/need.sh libgtest-dev

# A virtual environment holds everything from PyPI; the groups are in pyproject.toml.
$(VENV)/$(TAG).build: pyproject.toml | system
	$(call say,setting up $(VENV) for the build)
	@$(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install -q 'pip>=25.1'
	@$(BIN)/python -m pip install -q --group build
	@touch $@
$(VENV)/$(TAG).test: $(VENV)/$(TAG).build
	$(call say,installing what the tests need)
	@$(BIN)/python -m pip install -q --group test
	@$(BIN)/python -m pip install -q --no-deps --group test-without-requirements
	@touch $@
$(VENV)/$(TAG).lint: $(VENV)/$(TAG).build
	@$(BIN)/python -m pip install -q --group lint
	@touch $@
$(ORACLE)/$(TAG).done: pyproject.toml upstream.toml | system
	$(call say,installing upstream's torch $(UPSTREAM) into $(ORACLE) as the other side of comparisons)
	@$(PYTHON) -m venv --clear $(ORACLE)
	@$(ORACLE)/bin/python -m pip install -q 'pip>=25.1'
	@$(ORACLE)/bin/python -m pip install -q torch==$(UPSTREAM) --group oracle
	@touch $@

.PHONY: venv test-venv oracle
venv: $(VENV)/$(TAG).build
test-venv: $(VENV)/$(TAG).test
oracle: $(ORACLE)/$(TAG).done

# --- commands ---

## make codegen [TORCH_VERSION=x.y.z]  write generated/; with a version: move the pin first and print the difference
.PHONY: codegen
codegen: venv
	$(call say,generating from upstream's data and our claims)
	@rm -f build/codegen.inputs
	@$(BIN)/python -m codegen generate --out generated $(if $(TORCH_VERSION),--torch-version $(TORCH_VERSION))

## make build    compile torch._C into an importable tree: PYTHONPATH=build/python
.PHONY: build configure
configure: system venv
	$(call say,configuring $(BUILD))
	@cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=Release -DTN_TESTS=$(if $(TESTS),ON,OFF) \
	  -DPython_EXECUTABLE=$(abspath $(BIN))/python
build: configure
	$(call say,compiling with $(JOBS) jobs)
	@time nice -n 5 cmake --build $(BUILD) -j $(JOBS)
	@$(BIN)/python cmake/slowest.py $(BUILD)

## make wheel    build, then pack dist/torchnative-*.whl
.PHONY: wheel
wheel: build
	$(call say,packing the wheel)
	@rm -rf dist && CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) $(BIN)/python -m pip wheel -q --no-deps --no-build-isolation --wheel-dir dist .
	@ls -l dist

## make demo     wheel into a fresh environment: real sentences through a real checkpoint, compared with upstream's answers;
##               then a network that learns digits and adapts to shifted ones
.PHONY: demo
demo: wheel
	$(call say,installing the wheel and transformers into a fresh environment)
	@$(PYTHON) -m venv --clear $(DEMO)
	@$(DEMO)/bin/python -m pip install -q 'pip>=25.1'
	@$(DEMO)/bin/python -m pip install -q dist/torchnative-*.whl
	@$(DEMO)/bin/python -m pip install -q --group demo
	@$(DEMO)/bin/python -m pip check
	$(call say,embedding sentences)
	@cd $(DEMO) && HF_HUB_OFFLINE=1 bin/python $(CURDIR)/examples/embed_sentences.py --wheel $(CURDIR)/dist/torchnative-*.whl
	$(call say,learning digits and adapting to shifted ones)
	@cd $(DEMO) && bin/python $(CURDIR)/examples/adapt_digits.py

## make test     everything that CI runs: GoogleTest, then pytest
.PHONY: test
test: TESTS := 1
test: system-test build test-venv
	$(call say,C++ tests)
	@if [ -x $(BUILD)/tn_tests ]; then $(BUILD)/tn_tests --gtest_brief=1; else echo "no C++ tests are built"; fi
	$(call say,Python tests)
	@HF_HUB_OFFLINE=1 $(RUN) -m pytest -q -m "not network" --ignore=tests/agree tests

## make test-package   the wheel as users meet it: pip, other packages, an old CPU; asks the package registry
.PHONY: test-package
test-package: wheel test-venv
	@cmake/need.sh qemu-user
	$(call say,testing the wheel in environments of its own)
	@TN_WHEEL=$$(ls $(CURDIR)/dist/torchnative-*.whl) $(BIN)/python -m pytest -q tests/package

## make agree    the long comparison with upstream on upstream's own samples; records grades
.PHONY: agree
agree: build test-venv oracle
	$(call say,comparing with upstream)
	@TN_ORACLE=$(abspath $(ORACLE))/bin/python $(RUN) -m pytest -q tests/agree --record
	@$(BIN)/python -m codegen dashboard

## make coverage the dashboard in coverage-report/ from the manifest and the recorded grades
.PHONY: coverage
coverage: venv
	@$(BIN)/python -m codegen dashboard

## make bench    speed against upstream
.PHONY: bench
bench: build test-venv oracle
	@TN_ORACLE=$(abspath $(ORACLE))/bin/python $(RUN) benchmarks/run.py

## make check OP=relu   one operator: its claim, its row tests, upstream's samples
.PHONY: check
check: TESTS := 1
check: system-test build test-venv oracle
	@test -n "$(OP)" || { echo "usage: make check OP=<operator>"; exit 2; }
	@$(BIN)/python -m codegen show $(OP)
	@$(BUILD)/tn_tests --gtest_brief=1 --gtest_filter='*$(OP)*'
	@TN_ORACLE=$(abspath $(ORACLE))/bin/python $(RUN) -m pytest -q tests/agree/test_agree.py --op $(OP)

## make format   rewrite our C++ and Python to the house style
.PHONY: format
format: $(VENV)/$(TAG).lint
	@git ls-files '*.cpp' '*.h' '*.c' | xargs -r $(BIN)/clang-format -i
	@$(BIN)/ruff format -q . && $(BIN)/ruff check -q --fix .

## make lint     say what `make format` would change, and what ruff finds
.PHONY: lint
lint: $(VENV)/$(TAG).lint
	@git ls-files '*.cpp' '*.h' '*.c' | xargs -r $(BIN)/clang-format --dry-run -Werror
	@$(BIN)/ruff format -q --check . && $(BIN)/ruff check -q .

## make clean    remove what was built; upstream's tree and the environments stay
.PHONY: clean
clean:
	@rm -rf build/cmake $(TREE) $(DEMO) dist
