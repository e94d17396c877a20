// TensorBase's properties.
#include <string>

#include "bindings/convert.h"
#include "bindings/custom_geometry.h"
#include "bindings/node.h"
#include "bindings/objects.h"
#include "bindings/tensor.h"
#include "bindings/tensor_parts.h"
#include "bindings/torch_function.h"
#include "generated/ops/detach.h"
#include "runtime/autograd/accumulator.h"
#include "runtime/autograd_meta.h"
#include "runtime/refuse.h"
#include "runtime/warn.h"

namespace tn::py {

namespace {

struct Property {
  const char* name;
  PyObject* (*get)(PyObject* self, const Tensor& t);
  void (*set)(PyObject* self, const Tensor& t, PyObject* value) = nullptr;  // value null: deletion
};

PyObject* get_property(PyObject* self, void* closure) {
  const auto* const p = static_cast<const Property*>(closure);
  return guarded([&]() -> PyObject* {
    PyObject* told;
    if (__builtin_expect(needs_override(self), 0) && getter_override(self, p->name, &told)) return told;
    return p->get(self, tensor_of(self));
  });
}

int set_property(PyObject* self, PyObject* value, void* closure) {
  const auto* const p = static_cast<const Property*>(closure);
  return guarded([&]() -> int {
    int told;
    if (__builtin_expect(needs_override(self), 0) && setter_override(self, p->name, value, &told)) return told;
    p->set(self, tensor_of(self), value);
    return 0;
  });
}

// A property that is an operator.
PyObject* by_operator(const char* name, const Tensor& t) {
  const Arg arg = Arg::of(t);
  return wrap(call_tensor(required_op(name, ""), {&arg, 1}));
}
void copy_to(Tensor target, PyObject* value, const char* name) {
  if (!value) raise(PyExc_RuntimeError, "Deleting tensor property '%s' is not allowed", name);
  Tensor source;
  if (is_tensor(value)) source = tensor_of(value);
  else source = tensor_from_data(value, {.dtype = target.dtype(), .device = target.device(), .infer = false});
  const Arg args[] = {Arg::of(target), Arg::of(source), Arg::of(false)};
  call_tensor(required_op("aten::copy_", ""), args);
}
Tensor part(const char* name, const Tensor& t) {
  const Arg arg = Arg::of(t);
  return call_tensor(required_op(name, ""), {&arg, 1});
}

PyObject* get_data(PyObject*, const Tensor& t) {
  if (t->python_dispatch) {  // what lies behind it only its class knows
    const GradModeGuard no_grad(false);
    return wrap(at::detach(t));
  }
  Tensor alias = alias_with_geometry(t, t.sizes(), t.strides(), t.storage_offset());
  alias->own_version();
  alias->set_requires_grad_bit(false);
  return wrap(std::move(alias));
}
// Takes all of another tensor but its history and its version.
void set_data(PyObject*, const Tensor& t, PyObject* value) {
  if (!value) raise(PyExc_RuntimeError, "Deleting tensor data is not allowed. Delete tensor instead!");
  if (!is_tensor(value))
    raise(PyExc_TypeError, "Variable data has to be a tensor, but got %s", Py_TYPE(value)->tp_name);
  const Tensor& from = tensor_of(value);
  TensorImpl& to = *t.impl();
  TN_CHECK(t.layout() == from.layout() && t.device().type == from.device().type,
           "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor type.");
  TN_CHECK(!to.requires_grad() || is_floating(from.dtype()) || from.is_complex(),
           "data set to a tensor that requires gradients must be floating point or complex dtype");
  if (t.dtype() != from.dtype() || !(t.device() == from.device())) forget_accumulator(t);
  constexpr KeySet kPython = KeySet(DispatchKey::Python) | KeySet(DispatchKey::PythonTLSSnapshot);
  constexpr uint64_t kOwn = kPython.raw() | KeySet::kOurs;
  to.set_storage(from.storage());
  to.set_dtype(from.dtype());
  to.set_device(from.device());
  to.set_layout(from.layout());
  to.set_geometry(from.sizes(), from.strides(), from.storage_offset());
  to.set_keys(KeySet((from->keys().raw() & ~kOwn) | (to.keys().raw() & kOwn)));
}

PyObject* get_grad(PyObject*, const Tensor& t) {
  if (!t->autograd) Py_RETURN_NONE;
  const AutogradMeta& meta = autograd_meta(t);
  if (!meta.grad.defined() && !meta.retains_grad && t.requires_grad() && !is_leaf(t))
    warn(
        "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
        "populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf "
        "Tensor, use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure "
        "you "
        "access the leaf Tensor instead. See github.com/pytorch/pytorch/pull/30531 for more informations.");
  return wrap(meta.grad);
}
void set_grad(PyObject* self, const Tensor& t, PyObject* value) {
  if (!value || value == Py_None) {
    if (t->autograd) autograd_meta(t).grad.reset();
    return;
  }
  if (!is_tensor(value))
    raise(PyExc_TypeError, "assigned grad expected to be a Tensor or None but got grad of type %s",
          Py_TYPE(value)->tp_name);
  if (value == self) raise(PyExc_RuntimeError, "can't assign Variable as its own grad");
  const Tensor& g = tensor_of(value);
  if (g.dtype() != t.dtype())
    fail(ErrorKind::Runtime, "attempting to assign a gradient with dtype '", dtype_name(g.dtype()),
         "' to a tensor with grad_dtype '", scalar_type_name(t.dtype()),
         "'. The gradient must match the tensor's grad_dtype (defaults to the tensor's dtype). You can set the "
         "tensor's grad_dtype "
         "attribute with a specific dtype, or None to allow any dtype. Set grad_dtype with caution. Diverging the "
         "dtypes of a tensor and "
         "its gradient may break downstream systems that assume they match.");
  if (g.device().type != t.device().type)
    fail(ErrorKind::Runtime, "attempting to assign a gradient located on device with type '",
         device_type_name(g.device().type), "' to a tensor located on device with type '",
         device_type_name(t.device().type),
         "'. Please ensure that the assigned gradient and the tensor are on the same device");
  if (!(g.sizes() == t.sizes()))
    fail(ErrorKind::Runtime, "attempting to assign a gradient of size '", g.sizes(), "' to a tensor of size '",
         t.sizes(), "'. Please ensure that the gradient and the tensor are the same size");
  autograd_meta(t).grad = g;
}

void set_needs(PyObject*, const Tensor& t, PyObject* value) {
  if (!value || !PyBool_Check(value)) raise(PyExc_RuntimeError, "requires_grad must be a bool");
  const bool on = value == Py_True;
  if (!is_leaf(t))
    fail(ErrorKind::Runtime, "you can only change requires_grad flags of leaf variables.",
         on ? ""
            : " If you want to use a computed variable in a subgraph that doesn't require differentiation use "
              "var_no_grad = var.detach().");
  if (on && !is_floating(t.dtype()) && !t.is_complex())
    fail(ErrorKind::Runtime, "only Tensors of floating point and complex dtype can require gradients");
  set_requires_grad(t, on);
}

void set_backward_hooks(PyObject* self, const Tensor&, PyObject* value) {
  if (!value) raise(PyExc_RuntimeError, "Deletion of _backwards_hooks not allowed!");
  auto* const o = reinterpret_cast<TensorObject*>(self);
  Py_XSETREF(o->backward_hooks, value == Py_None ? nullptr : Py_NewRef(value));
}
void set_accumulate_hooks(PyObject* self, const Tensor&, PyObject* value) {
  if (!value) raise(PyExc_RuntimeError, "Deletion of _post_accumulate_grad_hooks not allowed!");
  auto* const o = reinterpret_cast<TensorObject*>(self);
  Py_XSETREF(o->post_accumulate_grad_hooks, value == Py_None ? nullptr : Py_NewRef(value));
}
PyObject* or_none(PyObject* o) { return Py_NewRef(o ? o : Py_None); }

PyObject* get_volatile(PyObject*, const Tensor&) {
  if (PyErr_WarnEx(PyExc_UserWarning, "volatile was removed (Variable.volatile is always False)", 1) < 0)
    return nullptr;
  Py_RETURN_FALSE;
}
void set_volatile(PyObject*, const Tensor&, PyObject*) {
  if (PyErr_WarnEx(PyExc_UserWarning,
                   "volatile was removed and now has no effect. Use `with torch.no_grad():` instead.", 1) < 0)
    throw PythonError();
}

template <DeviceType kType>
PyObject* on_device(PyObject*, const Tensor& t) {
  return new_bool(asked_device(t).type == kType);
}
template <Layout kLayout>
PyObject* has_layout(PyObject*, const Tensor& t) {
  return new_bool(asked_layout(t) == kLayout);
}
template <const char* const& kName>
PyObject* operator_property(PyObject*, const Tensor& t) {
  return by_operator(kName, t);
}

constexpr const char* kNumpyT = "aten::numpy_T";
constexpr const char* kMatrixH = "aten::matrix_H";
constexpr const char* kMT = "aten::mT";
constexpr const char* kMH = "aten::mH";
constexpr const char* kReal = "aten::real";
constexpr const char* kImag = "aten::imag";

constexpr Property kProperties[] = {
    {"H", operator_property<kMatrixH>},
    {"T", operator_property<kNumpyT>},
    {"mH", operator_property<kMH>},
    {"mT", operator_property<kMT>},
    {"real", operator_property<kReal>,
     [](PyObject*, const Tensor& t, PyObject* v) { copy_to(part(kReal, t), v, "real"); }},
    {"imag", operator_property<kImag>,
     [](PyObject*, const Tensor& t, PyObject* v) { copy_to(part(kImag, t), v, "imag"); }},
    {"data", get_data, set_data},
    {"grad", get_grad, set_grad},
    {"_grad", get_grad, set_grad},
    {"grad_fn",
     [](PyObject*, const Tensor& t) -> PyObject* {
       return t->autograd ? node_object(grad_fn_of(t)) : Py_NewRef(Py_None);
     }},
    {"_grad_fn",
     [](PyObject*, const Tensor& t) -> PyObject* {
       return t->autograd ? node_object(grad_fn_of(t)) : Py_NewRef(Py_None);
     },
     [](PyObject*, const Tensor& t, PyObject* value) {
       TN_CHECK(value, "Deletion of _grad_fn not allowed. Detach tensor instead!");
       TN_CHECK(value == Py_None, "_grad_fn can be only set to None");
       at::detach_(t);
     }},
    {"grad_dtype", [](PyObject*, const Tensor& t) { return Py_XNewRef(dtype_object(t.dtype())); },
     [](PyObject*, const Tensor& t, PyObject* v) {
       ScalarType wanted;
       if (v && dtype_argument(v, &wanted) && wanted == t.dtype()) return;
       refuse("Tensor.grad_dtype", "another dtype than the tensor's", "gradients have their tensor's dtype here");
     }},
    {"is_leaf", [](PyObject*, const Tensor& t) { return new_bool(is_leaf(t)); }},
    {"requires_grad", [](PyObject*, const Tensor& t) { return new_bool(t.requires_grad()); }, set_needs},
    {"retains_grad", [](PyObject*, const Tensor& t) { return new_bool(t->autograd && autograd_meta(t).retains_grad); }},
    {"output_nr",
     [](PyObject*, const Tensor& t) { return PyLong_FromUnsignedLong(t->autograd ? autograd_meta(t).output_nr : 0); }},
    {"name",
     [](PyObject*, const Tensor& t) -> PyObject* {
       if (!t->autograd || autograd_meta(t).name.empty()) Py_RETURN_NONE;
       return PyUnicode_FromString(autograd_meta(t).name.c_str());
     }},
    {"_base",
     [](PyObject*, const Tensor& t) -> PyObject* {
       if (!t->autograd) Py_RETURN_NONE;
       return wrap(autograd_meta(t).view.base);
     }},
    {"_version",
     [](PyObject*, const Tensor& t) -> PyObject* {
       if (t->is_inference()) fail(ErrorKind::Runtime, "Inference tensors do not track version counter.");
       return PyLong_FromUnsignedLong(t->version());
     }},
    {"_cdata", [](PyObject*, const Tensor& t) { return PyLong_FromVoidPtr(t.impl()); }},
    {"_backward_hooks",
     [](PyObject* self, const Tensor&) { return or_none(reinterpret_cast<TensorObject*>(self)->backward_hooks); },
     set_backward_hooks},
    {"_post_accumulate_grad_hooks",
     [](PyObject* self, const Tensor&) {
       return or_none(reinterpret_cast<TensorObject*>(self)->post_accumulate_grad_hooks);
     },
     set_accumulate_hooks},
    {"_python_dispatch", [](PyObject*, const Tensor& t) { return new_bool(t->python_dispatch); }},
    {"_has_symbolic_sizes_strides", [](PyObject*, const Tensor&) { return new_bool(false); }},
    {"volatile", get_volatile, set_volatile},
    {"shape", [](PyObject*, const Tensor& t) { return asked_sizes(t); }},
    {"ndim", [](PyObject*, const Tensor& t) { return asked_dim(t); }},
    {"dtype", [](PyObject*, const Tensor& t) { return Py_XNewRef(dtype_object(t.dtype())); }},
    {"layout", [](PyObject*, const Tensor& t) { return Py_XNewRef(layout_object(asked_layout(t))); }},
    {"device", [](PyObject*, const Tensor& t) { return device_object(asked_device(t)); }},
    {"itemsize", [](PyObject*, const Tensor& t) { return PyLong_FromSize_t(t.itemsize()); }},
    {"nbytes",
     [](PyObject*, const Tensor& t) { return PyLong_FromSize_t(static_cast<size_t>(t.numel()) * t.itemsize()); }},
    {"is_cpu", on_device<DeviceType::CPU>},
    {"is_cuda", on_device<DeviceType::CUDA>},
    {"is_ipu", on_device<DeviceType::IPU>},
    {"is_maia", on_device<DeviceType::MAIA>},
    {"is_meta", on_device<DeviceType::Meta>},
    {"is_mps", on_device<DeviceType::MPS>},
    {"is_mtia", on_device<DeviceType::MTIA>},
    {"is_vulkan", on_device<DeviceType::Vulkan>},
    {"is_xla", on_device<DeviceType::XLA>},
    {"is_xpu", on_device<DeviceType::XPU>},
    {"is_mkldnn", has_layout<Layout::Mkldnn>},
    {"is_sparse", has_layout<Layout::Sparse>},
    {"is_sparse_csr", has_layout<Layout::SparseCsr>},
    {"is_nested", [](PyObject*, const Tensor& t) { return new_bool(t->keys().has(DispatchKey::NestedTensor)); }},
    {"is_quantized", [](PyObject*, const Tensor& t) { return new_bool(is_quantized(t.dtype())); }},
};

}  // namespace

PyGetSetDef tensor_properties[std::size(kProperties) + 1];

void fill_properties() {
  for (size_t i = 0; i < std::size(kProperties); ++i) {
    const Property& p = kProperties[i];
    tensor_properties[i] = {p.name, get_property, p.set ? set_property : nullptr, nullptr, const_cast<Property*>(&p)};
  }
}

}  // namespace tn::py
