// Context flags with rules of their own; those that only remember a value are in codegen/surface/flags.tsv. Nothing in
// torchnative reads the GPU ones: they are kept because upstream's Python saves and restores them.
#include <cstring>
#include <initializer_list>

#include "bindings/names/names.h"
#include "bindings/names/table.h"
#include "kernels/attention/backends.h"

namespace tn::py::names {
namespace {

// --- float32 precision, by backend and kind of operator

enum Backend { kGeneric, kCuda, kMkldnn, kBackends };
enum Op { kAll, kConv, kRnn, kMatmul, kOps };
enum Precision { kNone, kIeee, kTf32, kBf16, kPrecisions };

constexpr const char* kBackendWords[] = {"generic", "cuda", "mkldnn"};
constexpr const char* kOpWords[] = {"all", "conv", "rnn", "matmul"};
constexpr const char* kPrecisionWords[] = {"none", "ieee", "tf32", "bf16"};
constexpr const char* kMatmulWords[] = {"highest", "high", "medium"};

Precision g_precision[kBackends][kOps];
// Until set, cuDNN's conv and rnn are tf32, but only where neither cuda.all nor generic.all says otherwise.
bool g_cudnn_untouched[kOps] = {false, true, true, false};
int g_matmul_precision = 0;  // index in kMatmulWords

template <size_t N>
int find_word(const char* const (&words)[N], const char* word) {
  for (size_t i = 0; i < N; ++i) {
    if (std::strcmp(words[i], word) == 0) return static_cast<int>(i);
  }
  return -1;
}

Precision effective(Backend backend, Op op) {
  if (g_precision[backend][op] != kNone) return g_precision[backend][op];
  if (g_precision[backend][kAll] != kNone) return g_precision[backend][kAll];
  if (g_precision[kGeneric][kAll] != kNone) return g_precision[kGeneric][kAll];
  return backend == kCuda && g_cudnn_untouched[op] ? kTf32 : kNone;
}

void set_precision(Backend backend, Op op, Precision precision) {
  g_precision[backend][op] = precision;
  if (backend == kCuda) g_cudnn_untouched[op] = false;
}

bool parse_place(const char* backend_word, const char* op_word, Backend* backend, Op* op) {
  const int found_op = find_word(kOpWords, op_word);
  const int found_backend = find_word(kBackendWords, backend_word);
  if (found_op < 0) return PyErr_Format(PyExc_RuntimeError, "Unknown op: %s", op_word) != nullptr;
  if (found_backend < 0) return PyErr_Format(PyExc_RuntimeError, "Unknown backend: %s", backend_word) != nullptr;
  if (found_backend == kGeneric && found_op != kAll) {
    PyErr_Format(PyExc_RuntimeError, "Invalid (backend, op) pair: (%d, %d)", found_backend, found_op);
    return false;
  }
  *backend = static_cast<Backend>(found_backend);
  *op = static_cast<Op>(found_op);
  return true;
}

PyObject* get_fp32_precision(PyObject*, PyObject* args) {
  const char *backend_word = nullptr, *op_word = nullptr;
  Backend backend;
  Op op;
  if (!PyArg_ParseTuple(args, "ss", &backend_word, &op_word)) return nullptr;
  if (!parse_place(backend_word, op_word, &backend, &op)) return nullptr;
  return PyUnicode_FromString(kPrecisionWords[effective(backend, op)]);
}

PyObject* set_fp32_precision(PyObject*, PyObject* args) {
  const char *backend_word = nullptr, *op_word = nullptr, *word = nullptr;
  Backend backend;
  Op op;
  if (!PyArg_ParseTuple(args, "sss", &backend_word, &op_word, &word)) return nullptr;
  if (!parse_place(backend_word, op_word, &backend, &op)) return nullptr;
  const int precision = find_word(kPrecisionWords, word);
  if (precision < 0) return PyErr_Format(PyExc_RuntimeError, "Unknown precision: %s", word);
  if (backend == kCuda && precision == kBf16) {
    return PyErr_Format(PyExc_RuntimeError, "backend 'cuda' does not support precision '%s'", word);
  }
  set_precision(backend, op, static_cast<Precision>(precision));
  return PyUnicode_FromString(kPrecisionWords[precision]);
}

PyObject* get_matmul_precision(PyObject*, PyObject*) {
  const Precision mkldnn = effective(kMkldnn, kMatmul);
  const bool mixed = (effective(kCuda, kMatmul) == kTf32 && g_matmul_precision == 0) ||
                     (mkldnn == kBf16 && g_matmul_precision != 2) || (mkldnn == kTf32 && g_matmul_precision != 1);
  if (mixed) {
    return PyErr_Format(PyExc_RuntimeError,
                        "float32 matmul precision: the value set by set_float32_matmul_precision and those set by "
                        "fp32_precision contradict each other; use only one of the two");
  }
  return PyUnicode_FromString(kMatmulWords[g_matmul_precision]);
}

PyObject* set_matmul_precision(PyObject*, PyObject* value) {
  if (!PyUnicode_Check(value)) {
    return PyErr_Format(PyExc_RuntimeError, "set_float32_matmul_precision expects a str, but got %s",
                        Py_TYPE(value)->tp_name);
  }
  const char* word = PyUnicode_AsUTF8(value);
  if (word == nullptr) return nullptr;
  const int found = find_word(kMatmulWords, word);
  if (found < 0) {
    if (PyErr_WarnFormat(PyExc_UserWarning, 1,
                         "%s is not one of 'highest', 'high', or 'medium'; the current "
                         "setFloat32MatmulPrecision call has no effect.",
                         word)) {
      return nullptr;
    }
    Py_RETURN_NONE;
  }
  g_matmul_precision = found;
  set_precision(kCuda, kMatmul, found == 0 ? kIeee : kTf32);
  set_precision(kMkldnn, kMatmul, found == 0 ? kIeee : found == 1 ? kTf32 : kBf16);
  Py_RETURN_NONE;
}

bool need_bool(const char* setter, PyObject* value) {
  if (PyBool_Check(value)) return true;
  PyErr_Format(PyExc_RuntimeError, "%s expects a bool, but got %s", setter, Py_TYPE(value)->tp_name);
  return false;
}

PyObject* get_cublas_tf32(PyObject*, PyObject*) {
  const bool allowed = effective(kCuda, kMatmul) == kTf32;
  if (allowed != (g_matmul_precision != 0)) {
    return PyErr_Format(PyExc_RuntimeError,
                        "allow_tf32 for matmul: the value set by allow_tf32 and that set by fp32_precision contradict "
                        "each other; use only one of the two");
  }
  return PyBool_FromLong(allowed);
}

PyObject* set_cublas_tf32(PyObject*, PyObject* value) {
  if (!need_bool("set_allow_tf32_cublas", value)) return nullptr;
  g_matmul_precision = value == Py_True ? 1 : 0;
  set_precision(kCuda, kMatmul, value == Py_True ? kTf32 : kIeee);
  Py_RETURN_NONE;
}

PyObject* get_cudnn_tf32(PyObject*, PyObject*) {
  const bool conv = effective(kCuda, kConv) == kTf32;
  if (conv != (effective(kCuda, kRnn) == kTf32)) {
    return PyErr_Format(PyExc_RuntimeError,
                        "allow_tf32 for cuDNN: conv and rnn have different fp32_precision; ask for each by name");
  }
  return PyBool_FromLong(conv);
}

PyObject* set_cudnn_tf32(PyObject*, PyObject* value) {
  if (!need_bool("set_allow_tf32_cublas", value)) return nullptr;
  for (Op op : {kConv, kRnn}) set_precision(kCuda, op, value == Py_True ? kTf32 : kNone);
  Py_RETURN_NONE;
}

// --- determinism

bool g_deterministic = false;
bool g_deterministic_warn_only = false;

PyObject* set_deterministic(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"mode", "warn_only", nullptr};
  PyObject* mode = nullptr;
  PyObject* warn_only = Py_False;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$O", const_cast<char**>(keywords), &mode, &warn_only)) {
    return nullptr;
  }
  if (!PyBool_Check(mode)) {
    return PyErr_Format(PyExc_TypeError,
                        "_set_deterministic_algorithms(): argument 'mode' (position 1) must be bool, not %s",
                        Py_TYPE(mode)->tp_name);
  }
  if (!PyBool_Check(warn_only)) {
    return PyErr_Format(PyExc_TypeError, "_set_deterministic_algorithms(): argument 'warn_only' must be bool, not %s",
                        Py_TYPE(warn_only)->tp_name);
  }
  g_deterministic = mode == Py_True;
  g_deterministic_warn_only = warn_only == Py_True;
  Py_RETURN_NONE;
}

PyObject* get_deterministic(PyObject*, PyObject*) { return PyBool_FromLong(g_deterministic); }
PyObject* get_deterministic_warn_only(PyObject*, PyObject*) { return PyBool_FromLong(g_deterministic_warn_only); }

// --- the rest

bool g_reduced[2][2] = {{true, true}, {true, true}};  // fp16, bf16: (allowed, with split-k)

template <int kind>
PyObject* get_reduced(PyObject*, PyObject*) {
  return PyTuple_Pack(2, g_reduced[kind][0] ? Py_True : Py_False, g_reduced[kind][1] ? Py_True : Py_False);
}

template <int kind>
PyObject* set_reduced(PyObject*, PyObject* args) {
  int allow = 0, split = 1;
  if (!PyArg_ParseTuple(args, "p|p", &allow, &split)) return nullptr;
  g_reduced[kind][0] = allow != 0;
  g_reduced[kind][1] = split != 0;
  Py_RETURN_NONE;
}

PyObject* g_sdp_order = nullptr;

PyObject* get_sdp_order(PyObject*, PyObject*) {
  return g_sdp_order == nullptr ? Py_BuildValue("[iiiii]", 1, 2, 0, 3, 4) : PySequence_List(g_sdp_order);
}

// The named backends come first, in their order; the others follow in theirs.
PyObject* set_sdp_order(PyObject*, PyObject* wanted) {
  PyObject* order = PySequence_List(wanted);
  PyObject* before = order == nullptr ? nullptr : get_sdp_order(nullptr, nullptr);
  if (before == nullptr) return Py_XDECREF(order), nullptr;
  bool ok = true;
  for (Py_ssize_t i = 0; ok && i < PyList_GET_SIZE(before); ++i) {
    PyObject* item = PyList_GET_ITEM(before, i);
    const int found = PySequence_Contains(order, item);
    ok = found >= 0 && (found > 0 || PyList_Append(order, item) == 0);
  }
  Py_DECREF(before);
  if (!ok) return Py_DECREF(order), nullptr;
  Py_XSETREF(g_sdp_order, order);
  Py_RETURN_NONE;
}

// What the CPU's attention reads too.
template <bool attention::Switches::* kSwitch>
PyObject* get_attention(PyObject*, PyObject*) {
  return PyBool_FromLong(attention::switches.*kSwitch);
}
template <bool attention::Switches::* kSwitch>
PyObject* set_attention(PyObject*, PyObject* value) {
  if (!PyBool_Check(value))
    return PyErr_Format(PyExc_RuntimeError, "set_sdp_use_math expects a bool, but got %s", Py_TYPE(value)->tp_name);
  attention::switches.*kSwitch = value == Py_True;
  Py_RETURN_NONE;
}

bool g_mobile_allocator = false;

PyObject* mobile_allocator_is_set(PyObject*, PyObject*) { return PyBool_FromLong(g_mobile_allocator); }

PyObject* set_mobile_allocator(PyObject*, PyObject*) {
  if (g_mobile_allocator) {
    return PyErr_Format(PyExc_RuntimeError,
                        "Already within the scope of another non-default cpu allocator.Cannot set another allocator.");
  }
  g_mobile_allocator = true;
  Py_RETURN_NONE;
}

PyObject* unset_mobile_allocator(PyObject*, PyObject*) {
  if (!g_mobile_allocator) {
    return PyErr_Format(PyExc_RuntimeError,
                        "setDefaultMobileCPUAllocator must have been called before unsetDefaultMobileCPUAllocator.");
  }
  g_mobile_allocator = false;
  Py_RETURN_NONE;
}

constexpr long kQengines[] = {2, 3, 4, 1};  // in upstream's order
long g_qengine = 4;

PyObject* supported_qengines(PyObject*, PyObject*) {
  return Py_BuildValue("[llll]", kQengines[0], kQengines[1], kQengines[2], kQengines[3]);
}
PyObject* get_qengine(PyObject*, PyObject*) { return PyLong_FromLong(g_qengine); }

PyObject* set_qengine(PyObject*, PyObject* value) {
  const long wanted = PyLong_AsLong(value);
  if (wanted == -1 && PyErr_Occurred() != nullptr) return nullptr;
  for (long known : kQengines) {
    if (known == wanted) {
      g_qengine = wanted;
      Py_RETURN_NONE;
    }
  }
  return PyErr_Format(PyExc_RuntimeError, "Unrecognized Quantized Engine: %ld", wanted);
}

long g_blas_backend = 1;  // cuBLAS
constexpr const char* kBlasMissing[] = {nullptr, nullptr, "cuBLASLt", "CK"};

PyObject* get_blas_backend(PyObject*, PyObject*) {
  PyObject* member = enum_member(find_enum("_BlasBackend"), g_blas_backend);
  return Py_XNewRef(member);
}

PyObject* set_blas_backend(PyObject*, PyObject* value) {
  long wanted = 0;
  if (!enum_value(find_enum("_BlasBackend"), value, &wanted)) {
    return PyErr_Format(PyExc_TypeError, "_set_blas_preferred_backend(): expected _BlasBackend, got %s",
                        Py_TYPE(value)->tp_name);
  }
  if (wanted >= 2 && wanted < 4) {
    return PyErr_Format(PyExc_RuntimeError,
                        "Cannot set preferred backend to %s if PyTorch has not been compiled with %s.",
                        kBlasMissing[wanted], kBlasMissing[wanted]);
  }
  g_blas_backend = wanted == 0 ? 1 : wanted;
  Py_RETURN_NONE;
}

template <size_t N>
PyObject* choose_word(const char* const (&words)[N], int* chosen, PyObject* value, const char* what) {
  const char* word = PyUnicode_Check(value) ? PyUnicode_AsUTF8(value) : nullptr;
  const int found = word == nullptr ? -1 : find_word(words, word);
  if (found < 0) return PyErr_Format(PyExc_RuntimeError, "Unknown %s: %S", what, value);
  *chosen = found;
  Py_RETURN_NONE;
}

constexpr const char* kFallbackWords[] = {"nothing", "warn", "error"};
constexpr const char* kDepthwiseWords[] = {"auto", "cudnn", "native"};
int g_fallback = 1;
int g_depthwise = 0;

PyObject* get_fallback(PyObject*, PyObject*) { return PyUnicode_FromString(kFallbackWords[g_fallback]); }
PyObject* set_fallback(PyObject*, PyObject* value) {
  return choose_word(kFallbackWords, &g_fallback, value, "autograd fallback mode");
}
PyObject* get_depthwise(PyObject*, PyObject*) { return PyUnicode_FromString(kDepthwiseWords[g_depthwise]); }
PyObject* set_depthwise(PyObject*, PyObject* value) {
  return choose_word(kDepthwiseWords, &g_depthwise, value, "cuDNN depthwise kernel mode");
}

// The getter answers False: no kernel of ours sums float16 in float16.
PyObject* set_cpu_fp16_reduction(PyObject*, PyObject* value) {
  if (!need_bool("set_allow_fp16_reduction_cpu", value)) return nullptr;
  if (value == Py_True) return PyErr_Format(PyExc_RuntimeError, "Float16 arithmetic is not supported by the CPU!");
  Py_RETURN_NONE;
}

template <typename F>
PyCFunction as_method(F* function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function));
}

PyMethodDef methods[] = {
    {"_get_fp32_precision_getter", get_fp32_precision, METH_VARARGS, nullptr},
    {"_set_fp32_precision_setter", set_fp32_precision, METH_VARARGS, nullptr},
    {"_get_float32_matmul_precision", get_matmul_precision, METH_NOARGS, nullptr},
    {"_set_float32_matmul_precision", set_matmul_precision, METH_O, nullptr},
    {"_get_cublas_allow_tf32", get_cublas_tf32, METH_NOARGS, nullptr},
    {"_set_cublas_allow_tf32", set_cublas_tf32, METH_O, nullptr},
    {"_get_cudnn_allow_tf32", get_cudnn_tf32, METH_NOARGS, nullptr},
    {"_set_cudnn_allow_tf32", set_cudnn_tf32, METH_O, nullptr},
    {"_get_deterministic_algorithms", get_deterministic, METH_NOARGS, nullptr},
    {"_get_deterministic_algorithms_warn_only", get_deterministic_warn_only, METH_NOARGS, nullptr},
    {"_set_deterministic_algorithms", as_method(set_deterministic), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"_get_cublas_allow_fp16_reduced_precision_reduction", get_reduced<0>, METH_NOARGS, nullptr},
    {"_set_cublas_allow_fp16_reduced_precision_reduction", set_reduced<0>, METH_VARARGS, nullptr},
    {"_get_cublas_allow_bf16_reduced_precision_reduction", get_reduced<1>, METH_NOARGS, nullptr},
    {"_set_cublas_allow_bf16_reduced_precision_reduction", set_reduced<1>, METH_VARARGS, nullptr},
    {"_get_sdp_priority_order", get_sdp_order, METH_NOARGS, nullptr},
    {"_set_sdp_priority_order", set_sdp_order, METH_O, nullptr},
    {"_get_flash_sdp_enabled", get_attention<&attention::Switches::flash>, METH_NOARGS, nullptr},
    {"_set_sdp_use_flash", set_attention<&attention::Switches::flash>, METH_O, nullptr},
    {"_get_math_sdp_enabled", get_attention<&attention::Switches::math>, METH_NOARGS, nullptr},
    {"_set_sdp_use_math", set_attention<&attention::Switches::math>, METH_O, nullptr},
    {"_get_math_sdp_allow_fp16_bf16_reduction", get_attention<&attention::Switches::reduced_precision_math>,
     METH_NOARGS, nullptr},
    {"_set_math_sdp_allow_fp16_bf16_reduction", set_attention<&attention::Switches::reduced_precision_math>, METH_O,
     nullptr},
    {"_is_default_mobile_cpu_allocator_set", mobile_allocator_is_set, METH_NOARGS, nullptr},
    {"_set_default_mobile_cpu_allocator", set_mobile_allocator, METH_NOARGS, nullptr},
    {"_unset_default_mobile_cpu_allocator", unset_mobile_allocator, METH_NOARGS, nullptr},
    {"_supported_qengines", supported_qengines, METH_NOARGS, nullptr},
    {"_get_qengine", get_qengine, METH_NOARGS, nullptr},
    {"_set_qengine", set_qengine, METH_O, nullptr},
    {"_get_blas_preferred_backend", get_blas_backend, METH_NOARGS, nullptr},
    {"_set_blas_preferred_backend", set_blas_backend, METH_O, nullptr},
    {"_get_autograd_fallback_mode", get_fallback, METH_NOARGS, nullptr},
    {"_set_autograd_fallback_mode", set_fallback, METH_O, nullptr},
    {"_get_cudnn_depthwise_kernel", get_depthwise, METH_NOARGS, nullptr},
    {"_set_cudnn_depthwise_kernel", set_depthwise, METH_O, nullptr},
    {"_set_cpu_allow_fp16_reduced_precision_reduction", set_cpu_fp16_reduction, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool add_flag_functions(PyObject* module) { return PyModule_AddFunctions(module, methods) == 0; }

}  // namespace tn::py::names
