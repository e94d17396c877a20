// Operator calls where the operator is data: torch.ops, redispatch, kernels written in Python.
#pragma once
#include <Python.h>

#include <array>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bindings/convert.h"
#include "runtime/door.h"
#include "runtime/schema.h"

namespace tn::py {

// Arguments as Python gave them, in vectorcall form.
struct VectorCall {
  PyObject* const* args;
  Py_ssize_t num_positional;
  PyObject* names;  // tuple of str or null; their values follow the positional ones

  Py_ssize_t num_keywords() const { return names ? PyTuple_GET_SIZE(names) : 0; }
};

// The tagged arguments of one call, and whatever they borrow from.
class BoundArgs {
 public:
  explicit BoundArgs(const FunctionSchema& schema);
  // Matches by upstream's rules for torch.ops. Throws tn::Error (RuntimeError) with upstream's words if they don't fit.
  void bind(const VectorCall& call);
  std::span<const Arg> args() const { return {args_, schema_.arguments().size()}; }

  // Converts one object to a type of the schema; false if it is of another type.
  bool convert(PyObject* object, TypePtr type, std::optional<int32_t> size, Arg* out);

 private:
  bool convert_list(PyObject* object, TypePtr element, std::optional<int32_t> size, Arg* out);
  bool convert_tensor(PyObject* object, Arg* out);
  Arg keep_object(PyObject* object);
  void bind_one(size_t index, PyObject* object);
  template <class T, class F>
  bool fill(PyObject* items, Tag tag, Arg* out, F&& read);

  const FunctionSchema& schema_;
  bool numbers_as_tensors_;
  Arg* args_;
  std::array<Arg, 16> inline_;
  std::vector<Arg> more_;
  std::deque<Tensor> tensors_;
  std::deque<Storage> storages_;
  std::deque<Stream> streams_;
  std::vector<Ref<Object>> objects_;
  std::vector<std::shared_ptr<void>> lists_;
};

// repr, for messages.
std::string value_text(PyObject* object);
// Results as Python has them: None, one value, or a tuple.
PyObject* results_to_python(OpRow& op, std::span<Value> results);

// torch.ops.x.y.z(...): __torch_function__ is not looked at here.
PyObject* call_op(OpRow& op, const VectorCall& call);
// The call continues with exactly these keys.
PyObject* redispatch_op(OpRow& op, KeySet keys, const VectorCall& call);
// The first overload that fits; RuntimeError that lists why each doesn't.
PyObject* call_packet(std::span<OpRow* const> overloads, const VectorCall& call);

// The overload that call_packet would take.
OpRow& resolve_packet(std::span<OpRow* const> overloads, const VectorCall& call);

// What a Python function is called with: positional values, then those of the keywords.
struct PythonArguments {
  std::vector<PyRef> values;
  size_t num_positional = 0;
  PyRef names;
};
// Appends a call's arguments; trailing ones that equal their defaults are left out, as upstream does.
void append_arguments(const FunctionSchema& schema, std::span<const Arg> args, PythonArguments& out);
// Takes what a Python function gave back as the operator's results.
void take_results(const FunctionSchema& schema, PyObject* result, Value* out);
// torch.ops.<namespace>.<name>.<overload>, cached in the row.
PyRef python_overload(OpRow& op);

// Operators claimed as `python`: calls torch._decomp.decomposition_table[overload].
class DecompositionKernel final : public BoxedKernel {
 public:
  void call(OpRow& op, KeySet keys, std::span<const Arg> args, Value* out) override;
};

// A kernel that is a Python function.
class PythonKernel final : public BoxedKernel {
 public:
  PythonKernel(PyObject* function, bool with_keyset) : function_(PyRef::share(function)), with_keyset_(with_keyset) {}
  ~PythonKernel() override;
  void call(OpRow& op, KeySet keys, std::span<const Arg> args, Value* out) override;

 private:
  PyRef function_;
  bool with_keyset_;
};

// A kernel for a key on every operator: Python gets (op, *args, **kwargs), with the key set first if asked for.
class PythonFallback final : public BoxedKernel {
 public:
  PythonFallback(PyObject* function, bool with_keyset) : function_(PyRef::share(function)), with_keyset_(with_keyset) {}
  ~PythonFallback() override;
  void call(OpRow& op, KeySet keys, std::span<const Arg> args, Value* out) override;

 private:
  PyRef function_;
  bool with_keyset_;
};

// Whether a Python number may stand where the schema of this operator ("aten::add") wants a tensor.
bool takes_numbers_as_tensors(std::string_view qualified);

// torch._C.DispatchKeySet of these bits.
PyRef python_keyset(KeySet keys);

}  // namespace tn::py
