// The rows that generated/names/*.cpp fills and bindings/names/*.cpp turns into Python objects.
#pragma once

#include <Python.h>

#include <cstdint>

namespace tn::py::names {

// When a name appears: with the module, or when one of upstream's late initialisers is called.
enum class Stage : uint8_t { kLoad, kAutograd, kC10d, kRpc, kDistAutograd, kFunctions };
enum class Literal : uint8_t { kNone, kBool, kInt, kFloat, kStr, kList, kTimedelta, kEnum, kInstance };
enum class FlagType : uint8_t { kBool, kInt, kStr, kAny };
enum class Action : uint8_t { kRefuse, kAnswer, kGet, kSet };
enum class Member : uint8_t { kMethod, kStatic, kProperty, kStaticProperty, kField };
enum class Base : uint8_t { kObject, kPybindObject, kRuntimeError, kException, kOwn };
enum class Metaclass : uint8_t { kType, kPybindType, kOpaqueBaseMeta, kReduceOpMeta };

enum ClassFlags : uint8_t {
  kIsBase = 1,
  kIsEnum = 2,
  kIsArithmetic = 4,
  kIsException = 8,
  kIsConstructible = 16,
  kIsRecord = 32,  // constructible from its fields, which are its first members
};

struct LiteralRow {
  Literal kind;
  int64_t integer;  // the value, or the class of an enum member or an instance
  double real;
  const char* text;
};

// A value behind a getter and a setter. A swapping setter returns the value before.
struct FlagRow {
  FlagType type;
  bool swap;
  int literal;
};

struct ModuleRow {
  const char* path;  // dotted, below torch._C; "" is torch._C itself
  Stage stage;
  const char* name;  // its __name__, which upstream does not always make from the path
};

struct FunctionRow {
  const char* name;
  Stage stage;
  Action action;
  int16_t module;
  int16_t argument;  // reason, literal or flag, by action
};

struct MemberRow {
  const char* name;
  Member kind;
  Action action;
  int16_t argument;
};

struct ValueRow {
  const char* name;
  int64_t value;
};

struct ClassRow {
  const char* path;
  const char* attribute;
  const char* spec_name;
  const char* qualname;  // null where the type's name is its qualified name
  Stage stage;
  Base base;
  Metaclass metaclass;
  uint8_t flags;
  int16_t module;  // -1 for a nested class
  int16_t parent;  // -1 for a class of a module
  int16_t base_index;
  int16_t reason;
  int first_member;
  int member_count;
  int first_value;
  int value_count;
};

struct ConstantRow {
  const char* name;
  Stage stage;
  int16_t module;  // -1 for a constant of a class
  int16_t owner;
  int16_t literal;
};

extern const char* const kReasons[];
extern const LiteralRow kLiterals[];
extern const FlagRow kFlags[];
extern const int kFlagCount;
extern const ModuleRow kModules[];
extern const int kModuleCount;
extern const FunctionRow kFunctions[];
extern const int kFunctionCount;
extern const ConstantRow kConstants[];
extern const int kConstantCount;
extern const MemberRow kMembers[];
extern const ValueRow kValues[];
extern const ClassRow kClasses[];
extern const int kClassCount;
extern PyTypeObject* g_types[];  // parallel to kClasses; null until the class's stage
extern const char* const kAutogradNodes[];
extern const int kAutogradNodeCount;
extern const int kAutogradNodeReason;

// All functions below follow CPython's convention: null or false means that a Python error is set.

PyObject* make_literal(const LiteralRow& row);
// The callable behind a row; `owner` is the dotted path it belongs to ("" for torch._C). Both strings are borrowed.
PyObject* make_callable(const char* owner, const char* name, Action action, int argument, PyObject* module_name,
                        const char* doc);
bool make_class(int index, PyObject* owner, PyObject* module_name);
PyObject* pybind_object_type();  // borrowed: the common base of upstream's pybind11 classes
bool set_opaque_base_metaclass(PyObject* type);
bool add_autograd_node_types(PyObject* module);
PyTypeObject* make_enum_type(const ClassRow& row, PyObject* base);
bool fill_enum_type(const ClassRow& row, PyTypeObject* type);
PyObject* enum_member_by_name(int class_index, const char* name);  // new reference
PyObject* raise_refusal(const char* path, const char* asked, const char* reason);

bool add_c10d_functions(PyObject* module);  // after the stage kC10d

// Hand-written parts, added after the table.
bool add_docstr_functions(PyObject* module);
bool add_flag_functions(PyObject* module);
bool add_helper_functions(PyObject* module);
bool add_dynamo_functions(PyObject* module);
bool add_cpu_functions(PyObject* module);
bool add_placements(PyObject* module);
bool add_worker_functions(PyObject* module);

}  // namespace tn::py::names
