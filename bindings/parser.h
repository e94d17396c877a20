// Argument parsing for every Python-visible operator name: tables from codegen, one parser, upstream's errors.
//
// A name has signatures in upstream's order. The parser finds the first that fits, fills the operator's tagged
// arguments (schema order, defaults in place) and enters the door. Tables are generated (generated/bindings/*.cpp).
#pragma once
#include <Python.h>

#include <cstdint>

#include "runtime/value.h"

namespace tn::py {

// What a parameter accepts. IntList with `size` > 0 also takes one int; Tensor with kNumbers also takes a number.
enum class ParamType : uint8_t {
  Tensor,
  Scalar,
  Int,
  Double,
  Bool,
  TensorList,
  OptionalTensorList,
  IntList,
  DoubleList,
  BoolList,
  ScalarList,
  Generator,
  Storage,
  ScalarType,
  Layout,
  MemoryFormat,
  Device,
  Stream,
  String,
  Dimname,
  DimnameList,
  QScheme,
  Object,
};

struct Param {
  const char* name;
  ParamType type;
  uint8_t flags;
  int8_t arg;   // index among the schema's arguments; kRequiresGrad, kOutParam or kIgnored for those outside it
  int8_t size;  // fixed list length, or 0

  static constexpr uint8_t kAllowNone = 1;
  static constexpr uint8_t kKeywordOnly = 2;
  static constexpr uint8_t kHasDefault = 4;
  static constexpr uint8_t kNumbers = 8;       // a number is wrapped as a 0-dim tensor
  static constexpr int8_t kOutParam = -1;      // `out=`: chooses the out op
  static constexpr int8_t kRequiresGrad = -2;  // applied to the result
  static constexpr int8_t kIgnored = -3;
};

struct Signature {
  const char*
      text;  // as error messages print it: "(Tensor input, Tensor other, *, Number alpha = 1, Tensor out = None)"
  const Param* params;  // for methods self is not among them
  const Arg* defaults;  // one for each schema argument of op
  uint8_t num_params;
  uint8_t num_positional;
  uint8_t num_args;  // of op
  uint8_t num_outs;  // out= tensors of out_op
  uint16_t op;       // OpId
  uint16_t out_op;   // OpId of the out= form, or kNoOp
  uint8_t flags;
  uint8_t num_out_args;    // of out_op
  const int8_t* out_args;  // for each argument of out_op: op's argument with this index, or -1-k: the k-th out= tensor

  static constexpr uint16_t kNoOp = 0xffff;
  static constexpr uint8_t kDeprecated = 1;   // warns, as upstream's deprecated.yaml says
  static constexpr uint8_t kHidden = 2;       // not listed in error messages
  static constexpr uint8_t kInplaceSelf = 4;  // result is self
  static constexpr uint8_t kOptions = 8;      // a factory: dtype, layout, device, pin_memory
  static constexpr uint8_t kListOut = 16;     // out= is one argument, a list of tensors
};

struct Function {
  const char* name;
  const Signature* signatures;
  uint8_t num_signatures;
  bool method;
  int16_t return_type;  // index of the named tuple in return_types, or -1
  const char* module;   // "torch", "torch.nn", "torch.special"...: who __torch_function__ is told was called
};

// The named tuples of `torch._C._return_types`.
struct ReturnType {
  const char* name;           // "max"
  const char* const* fields;  // null-terminated
  bool out;                   // results of the out= form have a type of their own, "max_out"
};

// Generated tables. Entries are PyMethodDefs whose functions call `call_function` with their own Function.
struct FunctionGroup {
  const char* where;  // "_VariableFunctions", "TensorBase", "_nn", "_linalg", "_fft", "_special", "_sparse", "_nested"
  PyMethodDef* methods;  // null-terminated; not const since CPython keeps the pointer
};
extern const FunctionGroup* const function_group_shards[];  // null-terminated; each shard ends with a null `where`
extern const ReturnType return_types[];
extern const int num_return_types;

// The one entry. `self` is the tensor for methods, ignored otherwise. New reference or null with an exception set.
PyObject* call_function(const Function& f, PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);

}  // namespace tn::py
