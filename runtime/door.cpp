#include "runtime/door.h"

#include "runtime/custom_geometry.h"
#include "runtime/fallbacks.h"
#include "runtime/missing_kernel.h"
#include "runtime/op_table.h"
#include "runtime/refuse.h"
#include "runtime/registry.h"

namespace tn {

constinit Observer* observer = nullptr;
constinit MissingKernel missing_kernel = nullptr;
constinit const CustomGeometry* custom_geometry = nullptr;

namespace door {
namespace {

// Tells the observer of one call, also when it throws.
class Watch {
 public:
  Watch(const OpRow& op, KeySet keys, std::span<const Arg> args) : op_(op), watched_(observer) {
    if (watched_) watched_->enter(op, keys, args);
  }
  void done(std::span<const Value> results) {
    if (watched_ && watched_ == observer) watched_->leave(op_, results);
    watched_ = nullptr;
  }
  ~Watch() {
    if (watched_ && watched_ == observer) watched_->abandon(op_);
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  const OpRow& op_;
  Observer* watched_;
};

}  // namespace

uint64_t key_bits(GeneratorImpl*) { return 0; }

uint64_t keys_of(std::span<const Arg> args) {
  uint64_t keys = 0;
  for (const Arg& a : args) {
    if (a.tag == Tag::Tensor) keys |= a.t->keys().raw();
    else if (a.tag == Tag::TensorList) keys |= key_bits(a.tensors());
  }
  return keys;
}

void refuse_key(const OpRow& row, KeySet keys) {
  const OpInfo& op = *row.info;
  if (op.reason) refuse(op, "call", op.reason);
  const DispatchKey key = keys.highest();
  if (missing_kernel) missing_kernel(row, key);
  if (key == DispatchKey::Undefined)
    refuse(op, "call without a tensor", "no kernel is registered for a call without tensors");
  refuse(op, str("backend ", key_name(key)), "no kernel for this key");
}

void call_boxed_at(OpRow& row, KeySet keys, std::span<const Arg> args, Value* out) {
  const AnyFn fn = row.fn[column(keys.raw() & ~KeySet::kOurs)];
  if (fn) return row.adapter(fn, args.data(), out);
  Found found = find_kernel(row, keys);
  if (found.boxed) return found.boxed->call(row, keys, args, out);
  if (found.typed) return row.adapter(found.typed, args.data(), out);
  refuse_key(row, keys);
}

void call_boxed(OpRow& row, std::span<const Arg> args, Value* out) {
  const KeySet keys(effective(row, keys_of(args)));
  if (__builtin_expect(observer == nullptr, 1)) return call_boxed_at(row, keys, args, out);
  Watch watch(row, keys, args);
  call_boxed_at(row, keys, args, out);
  watch.done({out, row.info->num_returns});
}

void redispatch_boxed(OpRow& row, KeySet keys, std::span<const Arg> args, Value* out) {
  call_boxed_at(row, KeySet(keys.raw() & row.live), args, out);
}

const Tensor& same_argument(const Value& result, std::span<const Tensor* const> originals) {
  const Arg wanted = result.arg();
  for (const Tensor* t : originals)
    if (t && wanted.tag == Tag::Tensor && t->impl() == wanted.t) return *t;
  // A Python kernel may give back another tensor for an in-place form; upstream takes the argument then, too.
  for (const Tensor* t : originals)
    if (t) return *t;
  fail(ErrorKind::Runtime, "expected a result that is one of the arguments, got another tensor");
}

}  // namespace door
}  // namespace tn
