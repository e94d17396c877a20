#include "bindings/names/names.h"

#include <datetime.h>

#include <cstring>
#include <string>

#include "bindings/names/table.h"
#include "bindings/py.h"
#include "runtime/refuse.h"

namespace tn::py {
namespace names {
namespace {

PyObject* g_root = nullptr;          // torch._C, borrowed: the module outlives its names
PyObject** g_modules = nullptr;      // parallel to kModules
PyObject** g_flag_values = nullptr;  // parallel to kFlags
bool g_stage_done[6] = {};

// What a builtin of the table knows about itself; lives as long as the process, as its PyMethodDef does.
struct Callee {
  const char* owner;
  const char* name;
  int argument;
  PyMethodDef def;
};

const Callee* callee_of(PyObject* self) { return static_cast<const Callee*>(PyCapsule_GetPointer(self, nullptr)); }

std::string path_of(const Callee& callee) {
  std::string path = callee.owner;
  if (!path.empty()) path += '.';
  return path + callee.name;
}

PyObject* call_refuse(PyObject* self, PyObject*, PyObject*) {
  const Callee* callee = callee_of(self);
  if (callee == nullptr) return nullptr;
  return raise_refusal(path_of(*callee).c_str(), "call", kReasons[callee->argument]);
}

PyObject* call_answer(PyObject* self, PyObject*, PyObject*) {
  const Callee* callee = callee_of(self);
  return callee == nullptr ? nullptr : make_literal(kLiterals[callee->argument]);
}

PyObject* call_get(PyObject* self, PyObject*, PyObject*) {
  const Callee* callee = callee_of(self);
  return callee == nullptr ? nullptr : Py_NewRef(g_flag_values[callee->argument]);
}

// bool is not taken for int nor the reverse, as upstream's setters.
bool fits(FlagType type, PyObject* value) {
  switch (type) {
    case FlagType::kBool: return PyBool_Check(value);
    case FlagType::kInt: return PyLong_Check(value) && !PyBool_Check(value);
    case FlagType::kStr: return PyUnicode_Check(value);
    case FlagType::kAny: return true;
  }
  return false;
}

const char* type_word(FlagType type) {
  constexpr const char* kWords[] = {"a bool", "an int", "a str", "an object"};
  return kWords[static_cast<int>(type)];
}

PyObject* call_set(PyObject* self, PyObject* args, PyObject* kwargs) {
  const Callee* callee = callee_of(self);
  if (callee == nullptr) return nullptr;
  PyObject* value = nullptr;
  if (PyTuple_GET_SIZE(args) == 1 && (kwargs == nullptr || PyDict_GET_SIZE(kwargs) == 0)) {
    value = PyTuple_GET_ITEM(args, 0);
  } else if (PyTuple_GET_SIZE(args) == 0 && kwargs != nullptr && PyDict_GET_SIZE(kwargs) == 1) {
    Py_ssize_t position = 0;
    PyDict_Next(kwargs, &position, nullptr, &value);
  }
  if (value == nullptr) {
    return PyErr_Format(PyExc_TypeError, "%s() takes exactly one argument (%zd given)", callee->name,
                        PyTuple_GET_SIZE(args));
  }
  const FlagRow& row = kFlags[callee->argument];
  if (!fits(row.type, value)) {
    // Upstream's hand-written setters raise RuntimeError; its jit and submodule ones come from pybind11.
    const bool hand_written = callee->owner[0] == '\0' && std::strncmp(callee->name, "_set_", 5) == 0;
    return PyErr_Format(hand_written ? PyExc_RuntimeError : PyExc_TypeError, "%s expects %s, but got %s", callee->name,
                        type_word(row.type), Py_TYPE(value)->tp_name);
  }
  PyObject* before = g_flag_values[callee->argument];
  g_flag_values[callee->argument] = Py_NewRef(value);
  if (row.swap) return before;
  Py_DECREF(before);
  Py_RETURN_NONE;
}

PyCFunctionWithKeywords function_of(Action action) {
  switch (action) {
    case Action::kRefuse: return call_refuse;
    case Action::kAnswer: return call_answer;
    case Action::kGet: return call_get;
    case Action::kSet: return call_set;
  }
  return call_refuse;
}

PyObject* make_timedelta(double seconds) {
  if (PyDateTimeAPI == nullptr) PyDateTime_IMPORT;
  if (PyDateTimeAPI == nullptr) return nullptr;
  return PyDelta_FromDSU(0, static_cast<int>(seconds), 0);
}

bool add_module(int index) {
  const std::string dotted = kModules[index].path;
  const size_t dot = dotted.rfind('.');
  PyObject* parent = g_root;
  if (dot != std::string::npos) {
    for (int i = 0; i < index; ++i) {
      if (dotted.compare(0, dot, kModules[i].path) == 0) parent = g_modules[i];
    }
  }
  PyObject* module = PyModule_New(kModules[index].name);
  if (module == nullptr) return false;
  g_modules[index] = module;
  return PyObject_SetAttrString(parent, dot == std::string::npos ? dotted.c_str() : dotted.c_str() + dot + 1, module) ==
         0;
}

bool add_functions(Stage stage, PyObject* const* module_names) {
  for (int i = 0; i < kFunctionCount; ++i) {
    const FunctionRow& row = kFunctions[i];
    if (row.stage != stage) continue;
    PyObject* function =
        make_callable(kModules[row.module].path, row.name, row.action, row.argument, module_names[row.module], nullptr);
    if (function == nullptr) return false;
    // A late stage must not hide what real bindings have set by then.
    PyObject* before =
        PyDict_SetDefault(PyModule_GetDict(g_modules[row.module]), PyUnicode_InternFromString(row.name), function);
    const bool failed = before == nullptr;
    Py_DECREF(function);
    if (failed) return false;
  }
  return true;
}

bool add_classes(Stage stage, PyObject* const* module_names) {
  for (int i = 0; i < kClassCount; ++i) {
    const ClassRow& row = kClasses[i];
    if (row.stage != stage) continue;
    PyObject* owner = row.parent >= 0 ? reinterpret_cast<PyObject*>(g_types[row.parent]) : g_modules[row.module];
    if (!make_class(i, owner, row.parent >= 0 ? nullptr : module_names[row.module])) return false;
  }
  return true;
}

bool add_constants(Stage stage) {
  for (int i = 0; i < kConstantCount; ++i) {
    const ConstantRow& row = kConstants[i];
    if (row.stage != stage) continue;
    PyObject* value = make_literal(kLiterals[row.literal]);
    if (value == nullptr) return false;
    PyObject* owner = row.module >= 0 ? g_modules[row.module] : reinterpret_cast<PyObject*>(g_types[row.owner]);
    const int failed = PyObject_SetAttrString(owner, row.name, value);
    Py_DECREF(value);
    if (failed) return false;
  }
  return true;
}

bool add_flag_values() {
  g_flag_values = new PyObject*[kFlagCount]();
  for (int i = 0; i < kFlagCount; ++i) {
    g_flag_values[i] = make_literal(kLiterals[kFlags[i].literal]);
    if (g_flag_values[i] == nullptr) return false;
  }
  return true;
}

bool install_stage(Stage stage) {
  bool& done = g_stage_done[static_cast<int>(stage)];
  if (done) return true;
  PyObject** module_names = new PyObject*[kModuleCount]();
  bool ok = true;
  for (int i = 0; ok && i < kModuleCount; ++i) {
    if (i > 0 && kModules[i].stage == stage) ok = add_module(i);
    if (ok && g_modules[i] != nullptr) {
      module_names[i] = i == 0 ? PyUnicode_FromString("torch._C") : PyModule_GetNameObject(g_modules[i]);
      ok = module_names[i] != nullptr;
    }
  }
  ok = ok && add_classes(stage, module_names) && add_constants(stage) && add_functions(stage, module_names);
  for (int i = 0; i < kModuleCount; ++i) Py_XDECREF(module_names[i]);
  delete[] module_names;
  done = ok;
  return ok;
}

}  // namespace

PyObject* raise_refusal(const char* path, const char* asked, const char* reason) {
  try {
    refuse(std::string("torch._C.") + path, asked, reason);
  } catch (...) {
    set_error_from_current_exception();
  }
  return nullptr;
}

PyObject* make_literal(const LiteralRow& row) {
  switch (row.kind) {
    case Literal::kNone: return Py_NewRef(Py_None);
    case Literal::kBool: return PyBool_FromLong(row.integer != 0);
    case Literal::kInt: return PyLong_FromLongLong(row.integer);
    case Literal::kFloat: return PyFloat_FromDouble(row.real);
    case Literal::kStr: return PyUnicode_FromString(row.text);
    case Literal::kList: return PyList_New(0);
    case Literal::kTimedelta: return make_timedelta(row.real);
    case Literal::kEnum: return enum_member_by_name(static_cast<int>(row.integer), row.text);
    case Literal::kInstance: {
      PyTypeObject* type = g_types[row.integer];
      return type->tp_alloc(type, 0);
    }
  }
  return nullptr;
}

PyObject* make_callable(const char* owner, const char* name, Action action, int argument, PyObject* module_name,
                        const char* doc) {
  // Never freed: a builtin borrows its definition, and these live as long as their module.
  Callee* callee = new Callee{owner, name, argument, {}};
  callee->def = {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function_of(action))),
                 METH_VARARGS | METH_KEYWORDS, doc};
  PyObject* self = PyCapsule_New(callee, nullptr, nullptr);
  if (self == nullptr) return nullptr;
  PyObject* function = PyCFunction_NewEx(&callee->def, self, module_name);
  Py_DECREF(self);
  return function;
}

}  // namespace names

bool install_names(PyObject* module) {
  using namespace names;
  g_root = module;
  g_modules = new PyObject*[kModuleCount]();
  g_modules[0] = module;
  return install_stage(Stage::kLoad) && add_flag_values() && add_docstr_functions(module) &&
         add_flag_functions(module) && add_helper_functions(module) && add_dynamo_functions(module) &&
         add_cpu_functions(module) && add_placements(module) && add_worker_functions(module);
}

bool install_submodule(const char* name) {
  using namespace names;
  for (int i = 1; i < kModuleCount; ++i) {
    if (std::strcmp(kModules[i].path, name) != 0) continue;
    const Stage stage = kModules[i].stage;
    if (g_stage_done[static_cast<int>(stage)]) return true;
    if (!install_stage(stage)) return false;
    if (stage == Stage::kFunctions && !add_autograd_node_types(g_modules[i])) return false;
    if (stage == Stage::kC10d && !add_c10d_functions(g_modules[i])) return false;
    const std::string full = std::string("torch._C.") + name;
    return PyDict_SetItemString(PyImport_GetModuleDict(), full.c_str(), g_modules[i]) == 0;
  }
  PyErr_Format(PyExc_SystemError, "install_submodule: expected a submodule of torch._C, got %s", name);
  return false;
}

}  // namespace tn::py
