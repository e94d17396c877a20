#include "runtime/refuse.h"

#include <atomic>

#include "runtime/door.h"
#include "runtime/error.h"

namespace tn {
namespace {

constinit std::atomic<int64_t> refusals{0};

}  // namespace

std::string refusal_text(std::string_view what, std::string_view asked, std::string_view reason) {
  std::string text = "torchnative: ";
  text.append(what).append(" refused: ").append(asked).append("; reason: ").append(reason);
  return text;
}

void refuse(std::string_view what, std::string_view asked, std::string_view reason) {
  refusals.fetch_add(1, std::memory_order_relaxed);
  throw Refusal(refusal_text(what, asked, reason));
}

static std::string qualified(const OpInfo& op) {
  return op.overload[0] == '\0' ? std::string(op.name) : str(op.name, '.', op.overload);
}

void refuse(const OpInfo& op, std::string_view asked, std::string_view reason) { refuse(qualified(op), asked, reason); }

void refuse_dtype(const OpInfo& op, ScalarType dtype) {
  refuse(op, str("dtype ", dtype_name(dtype)), "no kernel for this dtype");
}

int64_t refusal_count() noexcept { return refusals.load(std::memory_order_relaxed); }

}  // namespace tn
