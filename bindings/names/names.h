// Every name of torch._C that only has to exist, made at import from one table.
#pragma once

#include <Python.h>

namespace tn::py {

// Adds the submodules, classes, enums, functions and constants that upstream's torch._C has when it is loaded. Names
// that real bindings set later replace these. False: a Python error is set.
bool install_names(PyObject* module);

// Adds what upstream creates in a late initialiser, and puts the submodule into sys.modules: `_autograd`,
// `_distributed_c10d`, `_distributed_rpc`, `_distributed_autograd`, `_functions`. Again: true, changes nothing.
bool install_submodule(const char* name);

// Whether Python registered a class by this full name (torch._C._register_opaque_type): the schema parser takes such a
// name for a type.
bool is_opaque_type(const char* name);

// An enum of the table, found once by its path below torch._C ("DispatchKey", "_autograd.DeviceType").
struct EnumType {
  PyTypeObject* type = nullptr;
  int index = -1;
};
EnumType find_enum(const char* path);                      // type is null before the enum's stage
PyObject* enum_member(const EnumType& found, long value);  // borrowed; null without an error for no such value
bool enum_value(const EnumType& found, PyObject* object, long* value);  // false without an error for another type

}  // namespace tn::py
