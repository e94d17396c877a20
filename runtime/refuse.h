// Refusals: one wording for everything that is not there.
#pragma once
#include <string>
#include <string_view>

#include "runtime/dtype.h"
#include "runtime/fwd.h"

namespace tn {

// "torchnative: <what> refused: <asked>; reason: <reason>"
std::string refusal_text(std::string_view what, std::string_view asked, std::string_view reason);

[[noreturn]] void refuse(std::string_view what, std::string_view asked, std::string_view reason);
// The operator has no kernel here for what was asked, e.g. a key or a layout.
[[noreturn]] void refuse(const OpInfo& op, std::string_view asked, std::string_view reason);
[[noreturn]] void refuse_dtype(const OpInfo& op, ScalarType dtype);

// How often something was refused since the start, for reports.
int64_t refusal_count() noexcept;

}  // namespace tn
