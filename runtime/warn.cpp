#include "runtime/warn.h"

#include <cstdio>

namespace tn {

constinit WarnHook warn_hook = nullptr;

void warn(const std::string& message, WarnKind kind) {
  if (warn_hook) return warn_hook(message, kind);
  std::fprintf(stderr, "%s: %s\n", kind == WarnKind::User ? "UserWarning" : "DeprecationWarning", message.c_str());
}

}  // namespace tn
