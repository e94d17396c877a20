// Python's FunctionSchema, Argument, _AliasInfo, _SchemaInfo and the JIT types.
#pragma once

#include <Python.h>

#include "runtime/schema.h"

namespace tn {

// Add the classes and functions to torch._C; tn::Error if that fails. bind_jit_types comes first.
void bind_schema(PyObject* module);
void bind_schema_info(PyObject* module);  // called by bind_schema
void bind_jit_types(PyObject* module);

// New references; null with a Python error set on failure.
PyObject* wrap_schema(const SchemaRef& schema);
PyObject* wrap_type(TypePtr type);

// Borrowed from the object; null, without a Python error, if the object is something else.
FunctionSchema* unwrap_schema(PyObject* object);
TypePtr unwrap_type(PyObject* object);

// A schema's default as a Python value.
PyObject* default_to_python(const DefaultValue& value);

}  // namespace tn
