// Values between the door and Python.
#pragma once
#include <Python.h>

#include "bindings/py.h"
#include "runtime/door.h"
#include "runtime/value.h"

namespace tn::py {

// From this many elements on, an operator runs without the GIL.
inline constexpr int64_t kLargeNumel = 32768;

// A Python object in a boxed call.
class PyHolder final : public Object {
 public:
  explicit PyHolder(PyObject* borrowed) : object_(Py_NewRef(borrowed)) {}
  ~PyHolder() override {
    const GilAcquire gil;
    Py_DECREF(object_);
  }
  PyObject* get() const { return object_; }

 private:
  PyObject* object_;
};

// An operator's i-th result: new reference, or null with an exception. The schema tells dtypes from ints.
PyObject* value_to_python(const OpRow& op, int index, Value& v);
// The same for an argument or a result whose type in the schema is known by its text: "ScalarType", "int[]",
// "Tensor?"...
PyObject* arg_to_python(const Arg& a, std::string_view type);

// A tuple or named tuple for n results, and its items (the reference is stolen).
PyObject* new_result_tuple(int return_type, int n, bool out);
void set_result_item(PyObject* tuple, int i, PyObject* item);
bool bind_return_types(PyObject* module);  // _C._return_types

// One result of one operator by name, for hand-written methods. Throws if there is no such operator.
Tensor call_tensor(OpRow& op, std::span<const Arg> args, bool release_gil = false);
OpRow& required_op(const char* name, const char* overload);

}  // namespace tn::py
