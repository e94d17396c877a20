// torch._C._distributed_c10d: the debug level, which torch.distributed reads from the environment when it is imported.
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <string>

#include "bindings/names/names.h"
#include "bindings/names/table.h"

namespace tn::py::names {
namespace {

constexpr const char* kLevels[] = {"OFF", "INFO", "DETAIL"};  // by the value of DebugLevel
constexpr const char* kVariable = "TORCH_DISTRIBUTED_DEBUG";
long g_level = 0;

PyObject* get_debug_level(PyObject*, PyObject*) {
  return Py_XNewRef(enum_member(find_enum("_distributed_c10d.DebugLevel"), g_level));
}

PyObject* set_debug_level(PyObject*, PyObject* value) {
  if (!enum_value(find_enum("_distributed_c10d.DebugLevel"), value, &g_level)) {
    return PyErr_Format(PyExc_TypeError, "set_debug_level: expected DebugLevel, got %s", Py_TYPE(value)->tp_name);
  }
  Py_RETURN_NONE;
}

PyObject* set_debug_level_from_env(PyObject*, PyObject*) {
  const char* text = std::getenv(kVariable);
  std::string level = text == nullptr ? "OFF" : text;
  for (char& letter : level) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  for (long i = 0; i < 3; ++i) {
    if (level == kLevels[i]) {
      g_level = i;
      Py_RETURN_NONE;
    }
  }
  return PyErr_Format(PyExc_RuntimeError, "%s: expected OFF, INFO or DETAIL, got %s", kVariable, level.c_str());
}

PyMethodDef methods[] = {
    {"get_debug_level", get_debug_level, METH_NOARGS, nullptr},
    {"set_debug_level", set_debug_level, METH_O, nullptr},
    {"set_debug_level_from_env", set_debug_level_from_env, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool add_c10d_functions(PyObject* module) { return PyModule_AddFunctions(module, methods) == 0; }

}  // namespace tn::py::names
