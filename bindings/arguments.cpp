#include "bindings/arguments.h"

#include <string>
#include <vector>

#include "bindings/object_type.h"
#include "bindings/tensor.h"

namespace tn::py {

namespace {

const char* shown_kind(Kind k) {
  switch (k) {
    case Kind::Any: return "object";
    case Kind::Tensor: return "Tensor";
    case Kind::Storage: return "torch.Storage";
    case Kind::DType: return "torch.dtype";
    case Kind::Device: return "torch.device";
    case Kind::Layout: return "torch.layout";
    case Kind::MemoryFormat: return "torch.memory_format";
    case Kind::Generator: return "torch.Generator";
    case Kind::Int: return "int";
    case Kind::Bool: return "bool";
    case Kind::String: return "str";
    case Kind::Sizes: return "tuple of ints";
  }
  return "object";
}

bool is_index(PyObject* o) { return (PyLong_Check(o) && !PyBool_Check(o)) || is_numpy_integer(o); }

// Upstream looks at the first element only.
bool is_sizes(PyObject* o) {
  if (is_size(o)) return true;
  if (!PyTuple_Check(o) && !PyList_Check(o)) return false;
  if (PySequence_Fast_GET_SIZE(o) == 0) return true;
  PyObject* first = PySequence_Fast_GET_ITEM(o, 0);
  return is_index(first) ||
         (is_tensor(first) && tensor_of(first).dim() == 0 && is_integral(tensor_of(first).dtype(), false));
}

bool accepts(const Formal& f, PyObject* o) {
  ScalarType t;
  switch (f.kind) {
    case Kind::Any: return true;
    case Kind::Tensor: return is_tensor(o);
    case Kind::Storage: {
      Storage s;
      return storage_argument(o, &s);
    }
    case Kind::DType: return dtype_argument(o, &t);
    case Kind::Device: return is_device_argument(o);
    case Kind::Layout: return is_layout(o);
    case Kind::MemoryFormat: return is_memory_format(o);
    case Kind::Generator: return is_generator(o);
    case Kind::Int:
      return is_index(o) || (is_tensor(o) && tensor_of(o).numel() == 1 && is_integral(tensor_of(o).dtype(), false));
    case Kind::Bool: return PyBool_Check(o) || is_numpy_bool(o);
    case Kind::String: return PyUnicode_Check(o) || PyBytes_Check(o);
    case Kind::Sizes: return is_sizes(o);
  }
  return false;
}
bool fits(const Formal& f, PyObject* o) { return (o == Py_None && f.nullable) || accepts(f, o); }

size_t num_positional(const Form& form) {
  size_t n = 0;
  while (n < form.formals.size() && !form.formals[n].keyword) ++n;
  return n;
}
size_t num_required(const Form& form) {
  size_t n = 0;
  for (const Formal& f : form.formals) n += !f.optional;
  return n;
}

PyObject* keyword(Given given, const char* name) {
  const Py_ssize_t n = given.names ? PyTuple_GET_SIZE(given.names) : 0;
  for (Py_ssize_t i = 0; i < n; ++i)
    if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(given.names, i), name) == 0) return given.args[given.num + i];
  return nullptr;
}

[[noreturn]] void raise_type_error(const std::string& text) {
  PyErr_SetString(PyExc_TypeError, text.c_str());
  throw PythonError();
}

void missing(const char* function, const Form& form, Given given) {
  std::string names;
  int n = 0;
  for (size_t i = static_cast<size_t>(given.num); i < form.formals.size(); ++i) {
    if (form.formals[i].optional || keyword(given, form.formals[i].name)) continue;
    names += str(n++ ? ", " : "", '"', form.formals[i].name, '"');
  }
  raise_type_error(str(function, "() missing ", n, " required positional arguments: ", names));
}

void unexpected_keyword(const char* function, const Form& form, Given given) {
  const Py_ssize_t n = given.names ? PyTuple_GET_SIZE(given.names) : 0;
  for (Py_ssize_t k = 0; k < n; ++k) {
    const char* name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(given.names, k));
    size_t i = 0;
    while (i < form.formals.size() && std::string_view(form.formals[i].name) != name) ++i;
    if (i == form.formals.size()) raise_type_error(str(function, "() got an unexpected keyword argument '", name, "'"));
    if (static_cast<Py_ssize_t>(i) < given.num)
      raise_type_error(str(function, "() got multiple values for argument '", name, "'"));
  }
  raise_type_error(str("invalid keyword arguments"));
}

// Whether the form fits; with `raise` its error is raised instead.
bool match(const char* function, const Form& form, Given given, bool raise, Actuals& out) {
  const size_t positional = num_positional(form);
  const auto num = static_cast<size_t>(given.num);
  if (num > positional) {
    if (raise)
      raise_type_error(str(function, "() takes ", positional,
                           positional == 1 ? " positional argument" : " positional arguments", " but ", num,
                           num == 1 ? " was given" : " were given"));
    return false;
  }
  size_t used = 0;
  for (size_t i = 0; i < form.formals.size(); ++i) {
    const Formal& f = form.formals[i];
    PyObject* o = nullptr;
    if (i < num) {
      if (!f.keyword && given.names && keyword(given, f.name)) {
        if (raise) raise_type_error(str(function, "() got multiple values for argument '", f.name, "'"));
        return false;
      }
      o = given.args[i];
    } else if ((o = keyword(given, f.name))) {
      ++used;
    }
    if (o == nullptr) {
      if (!f.optional) {
        if (raise) missing(function, form, given);
        return false;
      }
      out.at[i] = nullptr;
      continue;
    }
    if (!fits(f, o)) {
      if (raise) {
        if (i < num)
          raise_type_error(str(function, "(): argument '", f.name, "' (position ", i + 1, ") must be ",
                               shown_kind(f.kind), ", not ", type_name(o)));
        raise_type_error(
            str(function, "(): argument '", f.name, "' must be ", shown_kind(f.kind), ", not ", type_name(o)));
      }
      return false;
    }
    out.at[i] = o == Py_None && f.nullable ? nullptr : o;
  }
  if (given.names && used != static_cast<size_t>(PyTuple_GET_SIZE(given.names))) {
    if (raise) unexpected_keyword(function, form, given);
    return false;
  }
  return true;
}

std::string shown_form(const Form& form) {
  std::string text = "(";
  bool star = false;
  for (size_t i = 0; i < form.formals.size(); ++i) {
    const Formal& f = form.formals[i];
    if (i) text += ", ";
    if (f.keyword && !star) {
      text += "*, ";
      star = true;
    }
    text += str(shown_kind(f.kind), ' ', f.name);
    if (f.optional) text += str(" = ", f.shown);
  }
  return text + ")";
}

std::string shown_given(Given given) {
  std::string text = "(";
  for (Py_ssize_t i = 0; i < given.num; ++i) text += str(i ? ", " : "", type_name(given.args[i]));
  const Py_ssize_t n = given.names ? PyTuple_GET_SIZE(given.names) : 0;
  for (Py_ssize_t i = 0; i < n; ++i) {
    if (given.num || i) text += ", ";
    text += str(PyUnicode_AsUTF8(PyTuple_GET_ITEM(given.names, i)), '=', type_name(given.args[given.num + i]));
  }
  // Upstream drops the last separator only where there are positional arguments.
  if (given.num == 0 && n) text += ", ";
  return text + ")";
}

std::string shown_argument(const Formal* f, PyObject* o, bool by_keyword) {
  const bool good = f && fits(*f, o);
  std::string text = good ? "" : "!";
  if (by_keyword && f) text += str(f->name, '=');
  if (PyTuple_Check(o) || PyList_Check(o)) {
    const bool tuple = PyTuple_Check(o);
    text += str(type_name(o), " of ", tuple ? "(" : "[");
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
    for (Py_ssize_t i = 0; i < n; ++i) text += str(i ? ", " : "", type_name(PySequence_Fast_GET_ITEM(o, i)));
    if (tuple && n == 1) text += ',';
    text += tuple ? ")" : "]";
  } else {
    text += type_name(o);
  }
  return text + (good ? "" : "!");
}

// Why a form of the right number of arguments doesn't fit.
std::string mismatch(const Form& form, Given given) {
  const Py_ssize_t keywords = given.names ? PyTuple_GET_SIZE(given.names) : 0;
  const auto total = static_cast<size_t>(given.num + keywords);
  // Upstream explains only where the count is that of all parameters, optional ones too.
  if (total != form.formals.size()) return "";
  std::string wrong;
  for (Py_ssize_t k = 0; k < keywords; ++k) {
    const char* name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(given.names, k));
    bool known = false;
    for (const Formal& f : form.formals) known |= std::string_view(f.name) == name;
    if (!known) wrong += str(wrong.empty() ? "" : ", ", name);
  }
  if (!wrong.empty()) return "      didn't match because some of the keywords were incorrect: " + wrong + "\n";
  std::string text = "      didn't match because some of the arguments have invalid types: (";
  for (size_t i = 0; i < total; ++i) {
    const bool by_keyword = i >= static_cast<size_t>(given.num);
    const Formal* f = i < form.formals.size() ? &form.formals[i] : nullptr;
    PyObject* o = by_keyword ? (f ? keyword(given, f->name) : nullptr) : given.args[i];
    if (o == nullptr) continue;
    text += shown_argument(f, o, by_keyword) + ", ";
  }
  if (given.num) text.resize(text.size() - 2);
  return text + ")\n";
}

[[noreturn]] void no_form(const char* function, std::span<const Form> forms, Given given) {
  const auto total = static_cast<size_t>(given.num + (given.names ? PyTuple_GET_SIZE(given.names) : 0));
  const Form* only = nullptr;
  int plausible = 0;
  for (const Form& form : forms)
    if (!form.hidden && total >= num_required(form) && total <= form.formals.size()) {
      only = &form;
      ++plausible;
    }
  if (plausible == 1) {
    Actuals out;
    match(function, *only, given, true, out);
  }
  std::string text = str(function, "() received an invalid combination of arguments - got ", shown_given(given),
                         ", but expected one of:\n");
  for (const Form& form : forms)
    if (!form.hidden) text += " * " + shown_form(form) + "\n" + mismatch(form, given);
  raise_type_error(text);
}

}  // namespace

std::optional<ScalarType> Actuals::dtype(size_t i) const {
  ScalarType t;
  return at[i] && dtype_argument(at[i], &t) ? std::optional(t) : std::nullopt;
}
std::optional<Device> Actuals::device(size_t i) const {
  return at[i] ? std::optional(device_argument(at[i])) : std::nullopt;
}

int64_t Actuals::integer(size_t i, int64_t absent) const {
  if (at[i] == nullptr) return absent;
  const PyRef index = PyRef::check(PyNumber_Index(at[i]));
  int overflow = 0;
  const long long v = PyLong_AsLongLongAndOverflow(index.get(), &overflow);
  if (overflow) fail(ErrorKind::Value, "Overflow when unpacking long long");
  if (v == -1 && PyErr_Occurred()) throw PythonError();
  return v;
}

Actuals parse(const char* function, std::span<const Form> forms, Given given) {
  if (given.names && PyTuple_GET_SIZE(given.names) == 0) given.names = nullptr;
  Actuals out;
  if (forms.size() == 1) {
    match(function, forms[0], given, true, out);
    return out;
  }
  for (size_t i = 0; i < forms.size(); ++i)
    if (match(function, forms[i], given, false, out)) {
      out.form = static_cast<int>(i);
      return out;
    }
  no_form(function, forms, given);
}

Actuals parse(const char* function, std::span<const Form> forms, PyObject* args, PyObject* kwargs) {
  const Py_ssize_t num = PyTuple_GET_SIZE(args);
  const Py_ssize_t keywords = kwargs ? PyDict_GET_SIZE(kwargs) : 0;
  if (keywords == 0) return parse(function, forms, Given{&PyTuple_GET_ITEM(args, 0), num, nullptr});
  std::vector<PyObject*> values(&PyTuple_GET_ITEM(args, 0), &PyTuple_GET_ITEM(args, 0) + num);
  const PyRef names = PyRef::check(PyTuple_New(keywords));
  Py_ssize_t at = 0, i = 0;
  PyObject *key, *value;
  while (PyDict_Next(kwargs, &at, &key, &value)) {
    PyTuple_SET_ITEM(names.get(), i++, Py_NewRef(key));
    values.push_back(value);
  }
  return parse(function, forms, Given{values.data(), num, names.get()});
}

}  // namespace tn::py
