// Operators that upstream's Python calls on hot paths and at import: named ranges for the profiler, which do nothing
// while it is off, and questions on absent libraries.
#include <string>

#include "bindings/convert.h"
#include "bindings/names/names.h"
#include "bindings/utilities.h"
#include "runtime/profile.h"
#include "runtime/schema_parser.h"

namespace tn::py {
namespace {

// The number of a range of the profiler, which its exit takes back; 0 while it is off.
int64_t open_range(std::string_view name) {
  if (__builtin_expect(!profile::active, 1)) return 0;
  return static_cast<int64_t>(profile::session().open(std::string(name), profile::Scope::User));
}
void close_range(int64_t range) {
  if (__builtin_expect(range != 0, 0)) profile::session().close(static_cast<profile::Range>(range));
}
class EnterRange final : public BoxedKernel {
 public:
  void call(OpRow&, KeySet, std::span<const Arg> args, Value* out) override {
    const GilAcquire gil;
    const PyRef token = PyRef::check(PyLong_FromLongLong(open_range(args[0].string())));
    out[0] = Value(Ref<Object>::adopt(new PyHolder(token.get())));
  }
};
class EnterTensorRange final : public BoxedKernel {
 public:
  void call(OpRow&, KeySet, std::span<const Arg> args, Value* out) override {
    out[0] = Value(scalar_tensor(Scalar(open_range(args[0].string())), ScalarType::Long));
  }
};
class LeaveRange final : public BoxedKernel {
 public:
  void call(OpRow&, KeySet, std::span<const Arg> args, Value*) override {
    const auto* const token = dynamic_cast<const PyHolder*>(static_cast<const Object*>(args[0].p));
    if (!token) return;
    const GilAcquire gil;
    if (PyLong_Check(token->get())) close_range(PyLong_AsLongLong(token->get()));
  }
};
class LeaveTensorRange final : public BoxedKernel {
 public:
  void call(OpRow&, KeySet, std::span<const Arg> args, Value*) override {
    const Tensor& token = args[0].tensor();
    if (token.dtype() == ScalarType::Long && token.is_cpu() && token.numel() == 1) close_range(*token.data<int64_t>());
  }
};
class AnswerFalse final : public BoxedKernel {
 public:
  void call(OpRow&, KeySet, std::span<const Arg>, Value* out) override { out[0] = Value(false); }
};

template <class Kernel>
void serve(const char* name, const char* overload) {
  register_kernel(required_op(name, overload),
                  {.key = DispatchKey::CompositeImplicitAutograd, .boxed = Ref<BoxedKernel>::adopt(new Kernel())});
}

}  // namespace

bool bind_no_op_kernels() {
  opaque_type_hook = [](std::string_view name) { return is_opaque_type(std::string(name).c_str()); };
  serve<EnterRange>("profiler::_record_function_enter_new", "");
  serve<EnterTensorRange>("profiler::_record_function_enter", "");
  serve<LeaveTensorRange>("profiler::_record_function_exit", "");
  serve<LeaveRange>("profiler::_record_function_exit", "_RecordFunction");
  for (const char* name :
       {"mkldnn::_is_mkldnn_acl_supported", "mkldnn::_is_mkldnn_bf16_supported", "mkldnn::_is_mkldnn_fp16_supported"})
    serve<AnswerFalse>(name, "");
  return true;
}

}  // namespace tn::py
