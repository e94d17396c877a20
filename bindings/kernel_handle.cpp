// A kernel as Python holds it: what an operator had for a key when it was asked, whatever is registered later.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <vector>

#include "bindings/boxed_call.h"
#include "bindings/dispatch.h"
#include "bindings/library_internal.h"
#include "bindings/tensor.h"
#include "runtime/registry.h"

namespace tn::py {
namespace {

namespace pb = pybind11;

struct KernelHandle {
  OpRow* op = nullptr;
  DispatchKey key = DispatchKey::Undefined;
  Ref<BoxedKernel> boxed;
  AnyFn typed = nullptr;
};

OpRow& named_op(const std::string& name) {
  const size_t dot = name.find('.', name.find("::") == std::string::npos ? 0 : name.find("::"));
  OpRow* const op = dot == std::string::npos ? find_op(name, "") : find_op(name.substr(0, dot), name.substr(dot + 1));
  TN_CHECK(op, "operator ", name, " does not exist");
  return *op;
}

KernelHandle handle_for(const std::string& name, const pb::object& key_object) {
  KernelHandle handle;
  handle.op = &named_op(name);
  handle.key = key_argument(key_object.ptr());
  TN_CHECK(has_computed_kernel_for_key(*handle.op, handle.key), "no kernel for ", key_name(handle.key), " for ", name);
  const Found found = find_kernel_for(*handle.op, handle.key);
  handle.boxed = Ref<BoxedKernel>::share(found.boxed);
  handle.typed = found.typed;
  return handle;
}

pb::object call_boxed(const KernelHandle& handle, KeySet keys, const pb::args& args, const pb::kwargs& kwargs) {
  OpRow& op = *handle.op;
  BoundArgs bound(schema_of(op));
  std::vector<PyObject*> values;
  for (const pb::handle& a : args) values.push_back(a.ptr());
  pb::list names;
  for (const auto& [name, value] : kwargs) {
    names.append(name);
    values.push_back(value.ptr());
  }
  const pb::tuple name_tuple(names);
  bound.bind({values.data(), static_cast<Py_ssize_t>(args.size()), kwargs.empty() ? nullptr : name_tuple.ptr()});
  std::vector<Value> results(std::max<size_t>(op.info->num_returns, 1));
  if (handle.boxed) handle.boxed->call(op, keys, bound.args(), results.data());
  else if (handle.typed) op.adapter(handle.typed, bound.args().data(), results.data());
  else door::refuse_key(op, KeySet(handle.key));
  PyObject* const result = results_to_python(op, {results.data(), op.info->num_returns});
  if (!result) throw pb::error_already_set();
  return pb::reinterpret_steal<pb::object>(result);
}

// Whether autograd would record a call on these: grad mode is on and some tensor requires a gradient.
bool any_requires_grad(const pb::args& args) {
  if (!grad_mode()) return false;
  for (const pb::handle& a : args)
    if (is_tensor(a.ptr()) && tensor_of(a.ptr()).requires_grad()) return true;
  return false;
}

// Every operator with a kernel registered under this key; all operators for no key.
std::vector<std::string> registrations(const std::string& key_text) {
  DispatchKey key = DispatchKey::Undefined;
  TN_CHECK(key_text.empty() || parse_key(key_text, &key), "could not parse dispatch key: ", key_text);
  std::vector<std::string> names;
  for (size_t id = 0; id < num_rows(); ++id) {
    const OpRow& op = row(id);
    if (!op.info || (!key_text.empty() && !has_kernel_for_key(op, key))) continue;
    names.push_back(str(op.info->name, *op.info->overload ? "." : "", op.info->overload));
  }
  return names;
}

}  // namespace

bool bind_kernel_handles(PyObject* module) {
  try {
    auto m = pb::reinterpret_borrow<pb::module_>(module);
    python_decomposition = Ref<BoxedKernel>::adopt(new DecompositionKernel());
    if (pb::hasattr(m, "_SafeKernelFunction")) pb::delattr(m, "_SafeKernelFunction");
    pb::class_<KernelHandle>(m, "_SafeKernelFunction")
        .def("call_boxed", call_boxed)
        .def("__repr__",
             [](const KernelHandle& h) {
               return str("SafeKernelFunction(op='", h.op->info->name, *h.op->info->overload ? "." : "",
                          h.op->info->overload, "', key='", key_name(h.key), "')");
             })
        .def_property_readonly("op_handle", [](const KernelHandle& h) { return std::string(h.op->info->name); });
    m.def("_dispatch_get_computed_kernel_for_dispatch_key", handle_for);
    m.def("_dispatch_has_backend_fallback",
          [](const pb::object& key) { return has_fallback(key_argument(key.ptr())); });
    m.def("_dispatch_get_registrations_for_dispatch_key", registrations, pb::arg("dispatch_key") = "");
    m.def("_dispatch_pystub", [](const std::string&, const std::string&) { return pb::none(); });
    m.def("_any_requires_grad", any_requires_grad);
    return true;
  } catch (...) {
    set_error_from_current_exception();
    return false;
  }
}

}  // namespace tn::py
