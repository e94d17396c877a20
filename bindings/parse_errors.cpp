// What is said when no signature fits, in upstream's words.
#include <cstring>
#include <string>
#include <vector>

#include "bindings/parse.h"

namespace tn::py {

std::string signature_text(const Signature& s) {
  const char* const open = std::strchr(s.text, '(');
  return open ? open : s.text;
}

namespace {

std::string type_of(PyObject* o) { return Py_TYPE(o)->tp_name; }

struct Keyword {
  std::string name;
  PyObject* value;
};

// Upstream prints keywords in the order of its hash table, which comes out as the reverse of the call's.
std::vector<Keyword> keywords_of(const PyCall& call) {
  std::vector<Keyword> out;
  for (Py_ssize_t i = call.num_keywords(); i-- > 0;) {
    const char* const name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(call.kwnames, i));
    if (!name) throw PythonError();
    out.push_back({name, call.args[call.nargs + i]});
  }
  return out;
}

// A signature as upstream's message code reads it back from its own text: '*' counts as an argument, and one with a
// default matches neither name nor type.
struct Slot {
  std::string name, type;
};
std::vector<Slot> slots_of(const Signature& s) {
  std::vector<Slot> out;
  bool star = false;
  if (s.num_params == 0) out.push_back({"", ""});  // "()" reads back as one nameless argument
  for (int i = 0; i < s.num_params; ++i) {
    const Param& p = s.params[i];
    if ((p.flags & Param::kKeywordOnly) && !star) {
      star = true;
      out.push_back({"*", "*"});
    }
    const bool plain = (p.flags & Param::kHasDefault) == 0;
    out.push_back({plain ? p.name : "", plain ? param_type_name(p.type) : ""});
  }
  return out;
}

bool type_fits(const std::string& want, PyObject* o) {
  const std::string got = type_of(o);
  return want == "float" ? got == "float" || got == "int" : got == want;
}

std::string described(PyObject* o) {
  if (!PyTuple_Check(o) && !PyList_Check(o)) return type_of(o);
  const bool tuple = PyTuple_Check(o);
  const Py_ssize_t n = PySequence_Size(o);
  std::string out = type_of(o) + " of " + (tuple ? "(" : "[");
  for (Py_ssize_t i = 0; i < n; ++i)
    out += (i ? ", " : "") + type_of(tuple ? PyTuple_GET_ITEM(o, i) : PyList_GET_ITEM(o, i));
  if (tuple && n == 1) out += ",";
  return out + (tuple ? ")" : "]");
}

std::string plain_types(const PyCall& call, const std::vector<Keyword>& keywords) {
  std::string out = "(";
  for (Py_ssize_t i = 0; i < call.nargs; ++i) out += type_of(call.args[i]) + ", ";
  for (const Keyword& k : keywords) out += k.name + "=" + type_of(k.value) + ", ";
  if (call.nargs > 0) out.erase(out.size() - 2);  // upstream leaves the comma after keywords alone
  return out + ")";
}

std::string marked_types(const std::vector<Slot>& slots, const PyCall& call, const std::vector<Keyword>& keywords) {
  const size_t nargs = static_cast<size_t>(call.nargs);
  std::string out = "(";
  for (size_t i = 0; i < nargs + keywords.size(); ++i) {
    PyObject* value = i < nargs ? call.args[i] : nullptr;
    std::string prefix;
    if (!value) {
      if (i >= slots.size()) break;
      for (const Keyword& k : keywords)
        if (k.name == slots[i].name) value = k.value;
      if (!value) continue;
      prefix = slots[i].name + "=";
    }
    const bool fits = i < slots.size() && type_fits(slots[i].type, value);
    const char* const mark = fits ? "" : "!";
    out += (out.size() > 1 ? ", " : "") + std::string(mark) + prefix + described(value) + mark;
  }
  return out + ")";
}

std::vector<std::string> unknown_keywords(const std::vector<Slot>& slots, const std::vector<Keyword>& keywords) {
  std::vector<std::string> out;
  const size_t from = slots.size() > keywords.size() ? slots.size() - keywords.size() : 0;
  for (const Keyword& k : keywords) {
    bool found = false;
    for (size_t i = from; i < slots.size(); ++i) found = found || slots[i].name == k.name;
    if (!found) out.push_back(k.name);
  }
  return out;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& p : parts) out += (out.empty() ? "" : ", ") + p;
  return out;
}

bool hidden(const Signature& s) { return (s.flags & (Signature::kHidden | Signature::kDeprecated)) != 0; }

}  // namespace

void raise_no_match(const Function& f, const PyCall& call, Parsed& p) {
  const Py_ssize_t given = call.nargs + call.num_keywords();
  const Signature* plausible = nullptr;
  int num_plausible = 0, num_shown = 0;
  for (int i = 0; i < f.num_signatures; ++i) {
    const Signature& s = f.signatures[i];
    if (hidden(s)) continue;
    ++num_shown;
    int required = 0;
    for (int k = 0; k < s.num_params; ++k) required += (s.params[k].flags & Param::kHasDefault) == 0;
    if (given < required || given > s.num_params) continue;
    plausible = &s;
    ++num_plausible;
  }
  if (num_plausible == 1) try_signature(f, *plausible, call, p, true);
  const std::vector<Keyword> keywords = keywords_of(call);
  std::string text = std::string(f.name) + "() received an invalid combination of arguments - got ";
  if (num_shown == 1) {
    const Signature* only = nullptr;
    for (int i = 0; i < f.num_signatures; ++i)
      if (!hidden(f.signatures[i])) only = &f.signatures[i];
    const std::vector<Slot> slots = slots_of(*only);
    const std::vector<std::string> unknown = unknown_keywords(slots, keywords);
    if (!unknown.empty()) {
      text += "unrecognized keyword arguments: " + joined(unknown);
    } else {
      const bool count_fits = slots.size() == static_cast<size_t>(given);
      text += (count_fits ? marked_types(slots, call, keywords) : plain_types(call, keywords)) + ", but expected " +
              signature_text(*only);
    }
  } else {
    text += plain_types(call, keywords) + ", but expected one of:\n";
    for (int i = 0; i < f.num_signatures; ++i) {
      const Signature& s = f.signatures[i];
      if (hidden(s)) continue;
      text += " * " + signature_text(s) + "\n";
      const std::vector<Slot> slots = slots_of(s);
      if (slots.size() != static_cast<size_t>(given)) continue;
      const std::vector<std::string> unknown = unknown_keywords(slots, keywords);
      if (!unknown.empty())
        text += "      didn't match because some of the keywords were incorrect: " + joined(unknown) + "\n";
      else
        text += "      didn't match because some of the arguments have invalid types: " +
                marked_types(slots, call, keywords) + "\n";
    }
  }
  PyErr_SetString(PyExc_TypeError, text.c_str());
  throw PythonError();
}

void warn_deprecated(const Function& f, const Signature& s) {
  static bool warned = false;  // upstream warns once for all of them
  if (warned) return;
  warned = true;
  std::string text = std::string("This overload of ") + f.name + " is deprecated:\n\t" + f.name + signature_text(s);
  bool first = true;
  for (int i = 0; i < f.num_signatures; ++i) {
    if (hidden(f.signatures[i])) continue;
    if (first) text += "\nConsider using one of the following signatures instead:";
    first = false;
    text += std::string("\n\t") + f.name + signature_text(f.signatures[i]);
  }
  if (PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 1) < 0) throw PythonError();
}

}  // namespace tn::py
