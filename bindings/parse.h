// The parser's result: which signature fits, the operator's arguments, and what the arguments borrow from.
#pragma once
#include <Python.h>

#include <memory>
#include <string>
#include <vector>

#include "bindings/parser.h"
#include "bindings/torch_function.h"
#include "runtime/tensor.h"
#include "runtime/value.h"

namespace tn::py {

inline constexpr int kMaxArgs = 48;
inline constexpr int kMaxOuts = 8;
inline constexpr int kMaxResults = 16;

class Parsed {
 public:
  Parsed() {}
  ~Parsed() {
    for (int i = 0; i < num_temps_; ++i) temps_[i] = nullptr;
    Py_XDECREF(deferred_);
  }
  Parsed(const Parsed&) = delete;
  Parsed& operator=(const Parsed&) = delete;

  const Signature* signature = nullptr;
  const char* function_name = "";  // for messages
  Overloaded overloaded;
  int num_outs = 0;
  bool requires_grad = false;
  Device absent_device;  // of a backend that Python initialises, which here says why it can't
  bool large = false;    // some tensor has so many elements that the GIL is worth releasing

  Arg* args() { return reinterpret_cast<Arg*>(arg_bytes_); }
  Arg& arg(int i) { return args()[i]; }
  Arg* outs() { return reinterpret_cast<Arg*>(out_bytes_); }

  // Memory that lives as long as this.
  void* allocate(size_t bytes) {
    bytes = (bytes + 7) & ~size_t{7};
    if (used_ + bytes <= sizeof(arena_)) {
      void* const p = arena_ + used_;
      used_ += bytes;
      return p;
    }
    heap_.push_back(std::make_unique<char[]>(bytes));
    return heap_.back().get();
  }
  // Keeps a tensor alive and answers it as an argument.
  Arg keep(Tensor t) {
    if (num_temps_ < kTemps) {
      temps_[num_temps_] = Ref<TensorImpl>::adopt(t.release());
      return Arg::of_impl(temps_[num_temps_++].get());
    }
    more_.push_back(std::move(t));
    return Arg::of_impl(more_.back().impl());
  }
  Arg keep(Storage s) {
    storage_ = std::move(s);
    return Arg::of(storage_);
  }
  // An error met while converting, raised only if the signature fits otherwise. Takes the exception being set.
  void defer_error();
  void reset();
  void finish();  // raises the deferred error

 private:
  static constexpr int kTemps = 4;
  alignas(Arg) unsigned char arg_bytes_[kMaxArgs * sizeof(Arg)];
  alignas(Arg) unsigned char out_bytes_[kMaxOuts * sizeof(Arg)];
  alignas(8) unsigned char arena_[384];
  size_t used_ = 0;
  Ref<TensorImpl> temps_[kTemps];
  int num_temps_ = 0;
  PyObject* deferred_ = nullptr;
  Storage storage_;
  std::vector<Tensor> more_;
  std::vector<std::unique_ptr<char[]>> heap_;
};

// The call as Python made it.
struct PyCall {
  PyObject* self;  // null for functions
  PyObject* const* args;
  Py_ssize_t nargs;
  PyObject* kwnames;
  Py_ssize_t num_keywords() const { return kwnames ? PyTuple_GET_SIZE(kwnames) : 0; }
};

// Finds the signature and fills `out`; null when __torch_function__ took the call, whose answer is then in
// *override_result. Throws PythonError (TypeError as upstream words it) when none fits.
const Signature* parse(const Function& f, const PyCall& call, Parsed& out, PyObject** override_result);

// parse_convert.cpp. 1: taken, 0: not of this type. `failed` is the position of the element that did not fit, or -1.
int accept(const Param& param, PyObject* obj, int position, Parsed& p, Arg* out, Py_ssize_t* failed);
// A list of ints spread over the positional arguments.
int accept_varargs(const Param& param, const PyCall& call, Parsed& p, Arg* out);
// Any Python or numpy number as a scalar argument; false if it is none.
bool number_argument(PyObject* obj, Arg* out);
const char* param_type_name(ParamType t);

// parse_errors.cpp
[[noreturn]] void raise_no_match(const Function& f, const PyCall& call, Parsed& p);
// Tries one signature; with `raise_errors` says why it does not fit.
bool try_signature(const Function& f, const Signature& s, const PyCall& call, Parsed& p, bool raise_errors);
void warn_deprecated(const Function& f, const Signature& s);
// "(Tensor input, *, Number alpha = 1)"
std::string signature_text(const Signature& s);

}  // namespace tn::py
