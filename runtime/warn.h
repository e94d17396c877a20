// Warnings of the core. The bindings turn them into Python's.
#pragma once
#include <cstdint>
#include <string>

namespace tn {

enum class WarnKind : uint8_t { User, Deprecation };

using WarnHook = void (*)(const std::string& message, WarnKind kind);
// Where warnings go; null: standard error.
extern constinit WarnHook warn_hook;

void warn(const std::string& message, WarnKind kind = WarnKind::User);

}  // namespace tn
