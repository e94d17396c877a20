// torch.layout, torch.memory_format and torch.qscheme: one immortal object for each value.
#include "bindings/object_type.h"
#include "bindings/objects.h"

namespace tn::py {

PyTypeObject layout_type{}, memory_format_type{}, qscheme_type{};

namespace {

constexpr const char* kLayouts[] = {"strided",    "sparse_coo", "sparse_csr", "_mkldnn",
                                    "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged"};
constexpr const char* kFormats[] = {"contiguous_format", "preserve_format", "channels_last", "channels_last_3d"};
constexpr const char* kSchemes[] = {"per_tensor_affine", "per_channel_affine", "per_tensor_symmetric",
                                    "per_channel_symmetric", "per_channel_affine_float_qparams"};
EnumObject layouts[std::size(kLayouts)], formats[std::size(kFormats)], schemes[std::size(kSchemes)];

template <const char* const* Names>
PyObject* repr(PyObject* self) {
  return PyUnicode_FromFormat("torch.%s", Names[enum_value(self)]);
}
template <const char* const* Names>
PyObject* reduce(PyObject* self, PyObject*) {
  return PyUnicode_FromString(Names[enum_value(self)]);
}
PyMethodDef format_methods[] = {{"__reduce__", reduce<kFormats>, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
PyMethodDef scheme_methods[] = {{"__reduce__", reduce<kSchemes>, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};

template <size_t N>
bool bind(PyObject* module, PyTypeObject& type, const char* dotted, EnumObject (&values)[N]) {
  if (!ready_type(type, dotted, sizeof(EnumObject), Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION))
    return false;
  for (size_t i = 0; i < N; ++i) {
    PyObject_Init(reinterpret_cast<PyObject*>(&values[i]), &type);
    values[i].value = static_cast<int8_t>(i);
  }
  return add_to_module(module, dotted + sizeof("torch.") - 1, reinterpret_cast<PyObject*>(&type));
}

}  // namespace

PyObject* layout_object(Layout l) { return reinterpret_cast<PyObject*>(&layouts[static_cast<int>(l)]); }
PyObject* memory_format_object(MemoryFormat f) { return reinterpret_cast<PyObject*>(&formats[static_cast<int>(f)]); }
PyObject* qscheme_object(QScheme q) { return reinterpret_cast<PyObject*>(&schemes[static_cast<int>(q)]); }

bool add_layout_names(PyObject* torch) {
  const auto add = [&](const char* const* names, EnumObject* values, size_t n) {
    for (size_t i = 0; i < n; ++i)
      if (!add_to_module(torch, names[i], reinterpret_cast<PyObject*>(&values[i]))) return false;
    return true;
  };
  return add(kLayouts, layouts, std::size(layouts)) && add(kFormats, formats, std::size(formats)) &&
         add(kSchemes, schemes, std::size(schemes));
}

bool bind_layouts(PyObject* module) {
  layout_type.tp_repr = repr<kLayouts>;
  memory_format_type.tp_repr = repr<kFormats>;
  memory_format_type.tp_methods = format_methods;
  qscheme_type.tp_repr = repr<kSchemes>;
  qscheme_type.tp_methods = scheme_methods;
  return bind(module, layout_type, "torch.layout", layouts) &&
         bind(module, memory_format_type, "torch.memory_format", formats) &&
         bind(module, qscheme_type, "torch.qscheme", schemes);
}

}  // namespace tn::py
