// Operators that upstream's Python calls on hot paths and at import, and that have nothing to do here.
#include <string>

#include "bindings/convert.h"
#include "bindings/names/names.h"
#include "bindings/utilities.h"
#include "runtime/schema_parser.h"

namespace tn::py {
namespace {

// No profiler: a range is a token that its exit takes back.
class EnterRange final : public BoxedKernel {
 public:
  void call(OpRow&, KeySet, std::span<const Arg>, Value* out) override {
    const GilAcquire gil;
    const PyRef token = PyRef::check(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type)));
    out[0] = Value(Ref<Object>::adopt(new PyHolder(token.get())));
  }
};
class EnterTensorRange final : public BoxedKernel {
 public:
  void call(OpRow&, KeySet, std::span<const Arg>, Value* out) override {
    out[0] = Value(empty({}, ScalarType::Double));
  }
};
class LeaveRange final : public BoxedKernel {
 public:
  void call(OpRow&, KeySet, std::span<const Arg>, Value*) override {}
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
  serve<LeaveRange>("profiler::_record_function_exit", "");
  serve<LeaveRange>("profiler::_record_function_exit", "_RecordFunction");
  for (const char* name :
       {"mkldnn::_is_mkldnn_acl_supported", "mkldnn::_is_mkldnn_bf16_supported", "mkldnn::_is_mkldnn_fp16_supported"})
    serve<AnswerFalse>(name, "");
  return true;
}

}  // namespace tn::py
