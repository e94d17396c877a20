// Arithmetic and comparison: Python's dunder methods, and the slots that skip their lookup for plain tensors.
#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include "bindings/parser.h"
#include "bindings/tensor.h"
#include "bindings/tensor_parts.h"
#include "bindings/torch_function.h"

namespace tn::py {

namespace {

using Entry = PyObject* (*)(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);

// A dunder method and the operator's method that it calls.
struct Dunder {
  const char* name;
  const char* target;
};
constexpr Dunder kDunders[] = {
    {"__add__", "add"},
    {"__radd__", "add"},
    {"__iadd__", "add_"},
    {"__mul__", "mul"},
    {"__rmul__", "mul"},
    {"__imul__", "mul_"},
    {"__sub__", "sub"},
    {"__isub__", "sub_"},
    {"__div__", "div"},
    {"__truediv__", "div"},
    {"__idiv__", "div_"},
    {"__floordiv__", "floor_divide"},
    {"__ifloordiv__", "floor_divide_"},
    {"__mod__", "remainder"},
    {"__imod__", "remainder_"},
    {"__eq__", "eq"},
    {"__ne__", "ne"},
    {"__lt__", "lt"},
    {"__le__", "le"},
    {"__gt__", "gt"},
    {"__ge__", "ge"},
    {"__matmul__", "matmul"},
    {"__rand__", "bitwise_and"},
    {"__ror__", "bitwise_or"},
    {"__rxor__", "bitwise_xor"},
    {"__and__", "__and__"},
    {"__iand__", "__iand__"},
    {"__or__", "__or__"},
    {"__ior__", "__ior__"},
    {"__xor__", "__xor__"},
    {"__ixor__", "__ixor__"},
    {"__lshift__", "__lshift__"},
    {"__ilshift__", "__ilshift__"},
    {"__rshift__", "__rshift__"},
    {"__irshift__", "__irshift__"},
};
constexpr int kNumDunders = static_cast<int>(std::size(kDunders));

constexpr int index_of(const char* name) {
  for (int i = 0; i < kNumDunders; ++i)
    if (std::string_view(kDunders[i].name) == name) return i;
  return -1;
}
constexpr int kEq = index_of("__eq__");

Entry targets[kNumDunders];  // found in the generated tables by install_number_slots

Entry find_target(const char* name) {
  for (const FunctionGroup* const* shard = function_group_shards; *shard; ++shard)
    for (const FunctionGroup* g = *shard; g->where; ++g)
      if (std::strcmp(g->where, "TensorBase") == 0)
        for (const PyMethodDef* m = g->methods; m->ml_name; ++m)
          if (std::strcmp(m->ml_name, name) == 0)
            return reinterpret_cast<Entry>(reinterpret_cast<void (*)()>(m->ml_meth));
  return nullptr;
}

// An operand of a foreign type may know how to do it.
PyObject* or_not_implemented(PyObject* result) {
  if (__builtin_expect(result != nullptr, 1)) return result;
  if (!PyErr_ExceptionMatches(PyExc_TypeError)) return nullptr;
  PyErr_Clear();
  Py_RETURN_NOTIMPLEMENTED;
}

PyObject* call_target(int i, PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  Entry& target = targets[i];
  if (__builtin_expect(!target, 0) && !(target = find_target(kDunders[i].target)))
    return PyErr_Format(PyExc_NotImplementedError,
                        "torchnative: TensorBase.%s refused: call; reason: there is no method '%s'", kDunders[i].name,
                        kDunders[i].target);
  return target(self, args, nargs, kwnames);
}

template <int kIndex>
PyObject* dunder(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  if constexpr (kIndex == kEq) {  // the one that overrides are told by its own name
    if (needs_override(self)) {
      PyObject* told = nullptr;
      const int done =
          guarded([&]() -> int { return method_override(self, "__eq__", args, nargs, kwnames, &told) ? 1 : 0; });
      if (done != 0) return done == 1 ? told : or_not_implemented(nullptr);
    }
  }
  return or_not_implemented(call_target(kIndex, self, args, nargs, kwnames));
}

PyObject* invert(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    PyObject* told;
    if (needs_override(self) && method_override(self, "__invert__", nullptr, 0, nullptr, &told)) return told;
    if (!is_integral(tensor_of(self).dtype(), true))
      raise(PyExc_TypeError, "~ (operator.invert) is only implemented on integer and Boolean-type tensors");
    static const Entry target = find_target("bitwise_not");
    if (!target)
      fail(ErrorKind::NotImplemented,
           "torchnative: TensorBase.__invert__ refused: call; reason: there is no bitwise_not");
    return target(self, nullptr, 0, nullptr);
  });
}

template <size_t... I>
constexpr auto dunder_entries(std::index_sequence<I...>) {
  return std::array<Entry, sizeof...(I)>{dunder<static_cast<int>(I)>...};
}
constexpr auto kEntries = dunder_entries(std::make_index_sequence<kNumDunders>());

// ---- slots
// -------------------------------------------------------------------------------------------------------------
// torch.Tensor is a Python class, so its slots look dunder methods up by name. For classes that don't override a dunder
// the slot calls the operator at once.

constexpr const char* kReflectedNames[] = {"__radd__", "__rsub__", "__rmul__", "__rtruediv__", "__rmatmul__"};

// The left operand is no tensor: the right one's reflected method decides, if it has one.
template <int kReflected>
PyObject* reflected(PyObject* left, PyObject* right) {
  static constexpr const char* const kName = kReflectedNames[kReflected];
  if constexpr (index_of(kName) >= 0) {
    return or_not_implemented(call_target(index_of(kName), right, &left, 1, nullptr));
  } else {
    static PyObject* const name = PyUnicode_InternFromString(kName);
    if (!_PyType_Lookup(Py_TYPE(right), name)) Py_RETURN_NOTIMPLEMENTED;
    return PyObject_CallMethodOneArg(right, name, left);
  }
}

template <int kIndex, int kReflected>
PyObject* binary_slot(PyObject* left, PyObject* right) {
  if (__builtin_expect(is_tensor(left), 1)) return or_not_implemented(call_target(kIndex, left, &right, 1, nullptr));
  if constexpr (kReflected >= 0) return reflected<kReflected>(left, right);
  else Py_RETURN_NOTIMPLEMENTED;
}

bool inherits(PyTypeObject* cls, const char* name) {
  const PyRef text = PyRef::adopt(PyUnicode_InternFromString(name));
  return text && (cls == tensor_class || _PyType_Lookup(cls, text.get()) == _PyType_Lookup(tensor_class, text.get()));
}

template <int kIndex, int kReflected = -1>
void install(PyTypeObject* cls, binaryfunc& slot) {
  if (!inherits(cls, kDunders[kIndex].name)) return;
  if constexpr (kReflected >= 0)
    if (!inherits(cls, kReflectedNames[kReflected])) return;
  slot = binary_slot<kIndex, kReflected>;
}

richcmpfunc original_compare = nullptr;

PyObject* compare_slot(PyObject* left, PyObject* right, int op) {
  static constexpr int kOf[] = {index_of("__lt__"), index_of("__le__"), kEq,
                                index_of("__ne__"), index_of("__gt__"), index_of("__ge__")};
  if (op == Py_EQ && (!is_exact_tensor(left) || torch_function_mode_active())) return original_compare(left, right, op);
  return or_not_implemented(call_target(kOf[op], left, &right, 1, nullptr));
}

}  // namespace

void install_number_slots(PyTypeObject* cls) {
  PyNumberMethods* const n = cls->tp_as_number;
  if (!tensor_class || !n || !(cls->tp_flags & Py_TPFLAGS_HEAPTYPE)) return;
  install<index_of("__add__"), 0>(cls, n->nb_add);
  install<index_of("__sub__"), 1>(cls, n->nb_subtract);
  install<index_of("__mul__"), 2>(cls, n->nb_multiply);
  install<index_of("__truediv__"), 3>(cls, n->nb_true_divide);
  install<index_of("__matmul__"), 4>(cls, n->nb_matrix_multiply);
  install<index_of("__iadd__")>(cls, n->nb_inplace_add);
  install<index_of("__isub__")>(cls, n->nb_inplace_subtract);
  install<index_of("__imul__")>(cls, n->nb_inplace_multiply);
  if (cls == tensor_class) original_compare = cls->tp_richcompare;
  for (const char* name : {"__lt__", "__le__", "__eq__", "__ne__", "__gt__", "__ge__"})
    if (!inherits(cls, name)) return;
  cls->tp_richcompare = compare_slot;
}

// METH_COEXIST: the methods stay methods, whatever slots the type has.
PyMethodDef tensor_number_methods[kNumDunders + 2];

void fill_number_methods() {
  for (int i = 0; i < kNumDunders; ++i)
    tensor_number_methods[i] = {kDunders[i].name, as_method(kEntries[static_cast<size_t>(i)]),
                                METH_FASTCALL | METH_KEYWORDS | METH_COEXIST, nullptr};
  tensor_number_methods[kNumDunders] = {"__invert__", invert, METH_NOARGS | METH_COEXIST, nullptr};
}

}  // namespace tn::py
