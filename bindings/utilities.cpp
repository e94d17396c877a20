// Small functions of torch._C on tensors, storages and threads that upstream's Python calls.
#include "bindings/utilities.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/boxed_call.h"
#include "bindings/convert.h"
#include "bindings/objects.h"
#include "bindings/tensor.h"
#include "runtime/shape.h"
#include "runtime/threads.h"

namespace tn::py {
namespace {

namespace pb = pybind11;

const Tensor& tensor_argument(const pb::handle& object, const char* who) {
  if (!is_tensor(object.ptr()))
    throw pb::type_error(std::string(who) + "(): expected a Tensor, got " + Py_TYPE(object.ptr())->tp_name);
  return tensor_of(object.ptr());
}

// ---- threads: these get docstrings later, so they come without one
// ---------------------------------------------------------
PyObject* get_threads(PyObject*, PyObject*) { return PyLong_FromLong(num_threads()); }
PyObject* get_interop(PyObject*, PyObject*) { return PyLong_FromLong(num_interop_threads()); }
template <void (*kSet)(int), const char* const& kName>
PyObject* set_threads(PyObject*, PyObject* value) {
  return guarded([&]() -> PyObject* {
    if (!PyLong_Check(value) || PyBool_Check(value))
      raise(PyExc_TypeError, "%s expects an int, but got %s", kName, Py_TYPE(value)->tp_name);
    const long count = PyLong_AsLong(value);
    if (count == -1 && PyErr_Occurred()) throw PythonError();
    if (count <= 0) fail(ErrorKind::Runtime, "Expected positive number of threads");
    kSet(static_cast<int>(count));
    Py_RETURN_NONE;
  });
}
constexpr const char* kSetThreads = "set_num_threads";
constexpr const char* kSetInterop = "set_num_interop_threads";
PyObject* init_threads(PyObject*, PyObject*) { Py_RETURN_NONE; }
// Denormals are never flushed, so only switching it off succeeds.
PyObject* set_flush_denormal(PyObject*, PyObject* value) {
  if (!PyBool_Check(value))
    return PyErr_Format(PyExc_TypeError, "flush_denormal expects a bool, but got %s", Py_TYPE(value)->tp_name);
  return new_bool(value == Py_False);
}

PyMethodDef thread_functions[] = {
    {"get_num_threads", get_threads, METH_NOARGS, nullptr},
    {"set_num_threads", set_threads<set_num_threads, kSetThreads>, METH_O, nullptr},
    {"get_num_interop_threads", get_interop, METH_NOARGS, nullptr},
    {"set_num_interop_threads", set_threads<set_num_interop_threads, kSetInterop>, METH_O, nullptr},
    {"init_num_threads", init_threads, METH_NOARGS, nullptr},
    {"set_flush_denormal", set_flush_denormal, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

// ---- aliases
// ---------------------------------------------------------------------------------------------------------------
void collect_storages(PyObject* object, std::vector<const StorageImpl*>& found) {
  if (is_tensor(object)) {
    const Tensor& t = tensor_of(object);
    if (t->storage()) found.push_back(t->storage().get());
  } else if (PyTuple_Check(object) || PyList_Check(object)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i)
      collect_storages(PySequence_Fast_GET_ITEM(object, i), found);
  } else if (PyDict_Check(object)) {
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(object, &at, &key, &value)) collect_storages(value, found);
  }
}
bool share_storage(const std::vector<const StorageImpl*>& a, const std::vector<const StorageImpl*>& b) {
  for (const StorageImpl* x : a)
    for (const StorageImpl* y : b)
      if (x == y) return true;
  return false;
}
bool overlaps(const pb::object& a, const pb::object& b) {
  std::vector<const StorageImpl*> first, second;
  collect_storages(a.ptr(), first);
  collect_storages(b.ptr(), second);
  return share_storage(first, second);
}
bool is_alias(const pb::object& a, const pb::object& b) {
  return is_tensor(a.ptr()) && is_tensor(b.ptr()) && tensor_of(a.ptr())->storage() == tensor_of(b.ptr())->storage();
}
bool output_is_alias(const pb::object& args, const pb::object& kwargs, const pb::object& outs) {
  std::vector<const StorageImpl*> given, made;
  collect_storages(args.ptr(), given);
  collect_storages(kwargs.ptr(), given);
  collect_storages(outs.ptr(), made);
  for (size_t i = 0; i < made.size(); ++i)
    for (size_t k = i + 1; k < made.size(); ++k)
      if (made[i] == made[k]) return true;
  return share_storage(made, given);
}

// ---- groups of tensors for foreach optimizers
// --------------------------------------------------------------------------------
pb::dict group_tensors(const std::vector<std::vector<pb::object>>& lists, bool with_indices) {
  TN_CHECK(!lists.empty(), "Expected at least one list of tensors");
  struct Group {
    pb::tuple key;
    std::vector<pb::list> lists;
    pb::list indices;
  };
  std::vector<Group> groups;
  std::map<std::tuple<int, int, int>, size_t> places;
  const auto& first = lists[0];
  for (const auto& list : lists)
    TN_CHECK(list.empty() || list.size() == first.size(), "Tensorlists must have the same length, got ", list.size(),
             " and ", first.size());
  for (size_t i = 0; i < first.size(); ++i) {
    if (first[i].is_none())
      fail(ErrorKind::Runtime, "Tensors of the first list of nested Tensor lists are supposed to be defined but the ",
           i, "-th Tensor is not.");
    const Tensor& t = tensor_argument(first[i], "_group_tensors_by_device_and_dtype");
    const auto id = std::make_tuple(static_cast<int>(t.device().type), static_cast<int>(t.device().index),
                                    static_cast<int>(t.dtype()));
    const auto [place, is_new] = places.try_emplace(id, groups.size());
    if (is_new) {
      groups.push_back({pb::make_tuple(pb::reinterpret_steal<pb::object>(device_object(t.device())),
                                       pb::reinterpret_borrow<pb::object>(dtype_object(t.dtype()))),
                        std::vector<pb::list>(lists.size()), pb::list()});
    }
    Group& group = groups[place->second];
    for (size_t k = 0; k < lists.size(); ++k)
      if (!lists[k].empty()) group.lists[k].append(lists[k][i]);
    if (with_indices) group.indices.append(i);
  }
  pb::dict result;
  for (Group& g : groups) result[g.key] = pb::make_tuple(pb::cast(g.lists), g.indices);
  return result;
}

pb::object infer_size_of(const pb::object& a, const pb::object& b) {
  const auto sizes = [](const pb::object& o) {
    if (!is_size(o.ptr())) throw pb::type_error("expected a torch.Size, got " + std::string(Py_TYPE(o.ptr())->tp_name));
    return pb::cast<std::vector<int64_t>>(o);
  };
  const std::vector<int64_t> x = sizes(a), y = sizes(b);
  const DimVector joined = infer_size(IntView(x.data(), x.size()), IntView(y.data(), y.size()));
  return pb::reinterpret_steal<pb::object>(size_object(joined));
}

// ---- marks on tensors
// ---------------------------------------------------------------------------------------------------------
constexpr const char* kNoPointer =
    "Cannot access data pointer of Tensor (e.g. FakeTensor, FunctionalTensor). If you're using "
    "torch.compile/export/fx, it is likely "
    "that we are erroneously tracing into a custom kernel. To fix this, please wrap the custom kernel into an opaque "
    "custom op. Please "
    "see the following for details: https://pytorch.org/tutorials/advanced/custom_ops_landing_page.html";

void increment_version(const pb::object& tensors) {
  const auto bump = [](const pb::handle& o) {
    const Tensor& t = tensor_argument(o, "increment_version");
    if (!t->is_inference()) t->bump_version();  // those have no version
  };
  if (is_tensor(tensors.ptr())) return bump(tensors);
  for (const pb::handle& t : tensors) bump(t);
}
// The two Python objects exchange what they stand for.
void swap_impls(const pb::object& a, const pb::object& b) {
  tensor_argument(a, "_swap_tensor_impl");
  tensor_argument(b, "_swap_tensor_impl");
  auto* const x = reinterpret_cast<TensorObject*>(a.ptr());
  auto* const y = reinterpret_cast<TensorObject*>(b.ptr());
  std::swap(x->impl, y->impl);
  std::swap(x->impl->pyobj, y->impl->pyobj);
}

void bind_marks(pb::module_& m) {
  m.def("_has_storage",
        [](const pb::object& t) { return static_cast<bool>(tensor_argument(t, "_has_storage")->storage()); });
  m.def("_set_conj", [](const pb::object& t, bool on) { tensor_argument(t, "_set_conj")->set_conj(on); });
  m.def("_set_neg", [](const pb::object& t, bool on) { tensor_argument(t, "_set_neg")->set_neg(on); });
  m.def("_get_tensor_metadata", [](const pb::object& o) {
    const Tensor& t = tensor_argument(o, "_get_tensor_metadata");
    pb::dict marks;
    if (t->is_conj()) marks["conj"] = true;
    if (t->is_neg()) marks["neg"] = true;
    return marks;
  });
  m.def("_set_tensor_metadata", [](const pb::object& o, const std::map<std::string, bool>& marks) {
    const Tensor& t = tensor_argument(o, "_set_tensor_metadata");
    for (const auto& [name, on] : marks) {
      if (name == "conj") t->set_conj(on);
      else if (name == "neg") t->set_neg(on);
      else fail(ErrorKind::Runtime, "Unexpected key `", name, "` passed to setTensorMetadata().");
    }
  });
  m.def("_set_throw_on_mutable_data_ptr", [](const pb::object& t) {
    tensor_argument(t, "_set_throw_on_mutable_data_ptr")->storage()->no_data_reason = kNoPointer;
  });
  m.def("_set_warn_deprecated_on_mutable_data_ptr",
        [](const pb::object& t) { tensor_argument(t, "_set_warn_deprecated_on_mutable_data_ptr"); });
  m.def("_increment_version", increment_version);
  m.def("_swap_tensor_impl", swap_impls);
  m.def("_data_address", [](const pb::object& t) {
    return reinterpret_cast<uintptr_t>(tensor_argument(t, "_data_address")->raw_data());
  });
  m.def("_storage_address", [](const pb::object& t) {
    return reinterpret_cast<uintptr_t>(tensor_argument(t, "_storage_address")->storage().get());
  });
  m.def("_storage_id", [](const pb::object& t) {
    return reinterpret_cast<uintptr_t>(tensor_argument(t, "_storage_id")->storage().get());
  });
}

// ---- tracebacks: one tuple a frame, innermost first
// ------------------------------------------------------------------------------
pb::object gather_traceback(bool python, bool, bool) {
  pb::list frames;
  if (!python) return frames;
  PyFrameObject* frame = PyEval_GetFrame();
  Py_XINCREF(frame);
  while (frame) {
    PyCodeObject* const code = PyFrame_GetCode(frame);
    frames.append(pb::make_tuple(pb::reinterpret_borrow<pb::object>(code->co_name),
                                 pb::reinterpret_borrow<pb::object>(code->co_filename), PyFrame_GetLineNumber(frame)));
    Py_DECREF(code);
    PyFrameObject* const back = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
  return frames;
}
pb::list symbolize(const std::vector<pb::list>& tracebacks) {
  pb::list all;
  for (const pb::list& frames : tracebacks) {
    pb::list named;
    for (const pb::handle& f : frames) {
      const auto parts = pb::reinterpret_borrow<pb::tuple>(f);
      pb::dict row;
      row["name"] = parts[0];
      row["filename"] = parts[1];
      row["line"] = parts[2];
      named.append(row);
    }
    all.append(named);
  }
  return all;
}
void bind_tracebacks(pb::module_ profiler) {
  profiler.def("gather_traceback", gather_traceback, pb::arg("python") = true, pb::arg("script") = true,
               pb::arg("cpp") = true);
  profiler.def("symbolize_tracebacks", symbolize);
}

void bind_answers(pb::module_& m) {
  m.def("_is_alias_of", is_alias);
  m.def("_overlaps", overlaps);
  m.def("_any_output_is_alias_to_input_or_output", output_is_alias);
  m.def("_group_tensors_by_device_and_dtype", group_tensors, pb::arg("tensorlistlist"),
        pb::arg("with_indices") = false);
  m.def("_infer_size", infer_size_of);
  m.def("_should_allow_numbers_as_tensors",
        [](const std::string& name) { return takes_numbers_as_tensors("aten::" + name); });
  m.def("_get_default_device", [] { return "cpu"; });
  m.def(
      "_get_accelerator",
      [](std::optional<bool>) { return pb::reinterpret_steal<pb::object>(device_object(Device())); },
      pb::arg("check") = pb::none());
  m.def("_autocast_supported_devices", [] {
    return std::vector<std::string>{"cpu", "cuda", "mtia", "maia", "xpu", "ipu", "hpu", "xla", "privateuseone", "mps"};
  });
  m.def("_functionalization_reapply_views_tls", [] { return false; });
  m.def("_get_graph_exec_group", [] { return pb::none(); });
  m.def("_ensureCUDADeviceGuardSet", [] {});
  m.def(
      "_get_cpp_backtrace", [](int64_t, int64_t) { return std::string(); }, pb::arg("frames_to_skip"),
      pb::arg("maximum_number_of_frames"));
  m.def("_parallel_info", [] {
    return str("torchnative/Parallel:\n\tget_num_threads() : ", num_threads(),
               "\n\tget_num_interop_threads() : ", num_interop_threads(), "\nparallel backend: own pool\n");
  });
  m.def("_show_config", [] { return std::string("torchnative built with:\n  - C++20\n  - Highway\n"); });
  m.def("_cxx_flags", [] { return std::string("-std=c++20 -O2"); });
  // No accelerator: the current device is none, whatever is asked for.
  m.def("_accelerator_exchangeDevice", [](int64_t) { return -1; });
  m.def("_accelerator_maybeExchangeDevice", [](int64_t) { return -1; });
}

}  // namespace

bool bind_utilities(PyObject* module) {
  try {
    auto m = pb::reinterpret_borrow<pb::module_>(module);
    if (PyModule_AddFunctions(module, thread_functions) < 0) return false;
    bind_marks(m);
    bind_answers(m);
    bind_tracebacks(m.attr("_profiler").cast<pb::module_>());
    return true;
  } catch (...) {
    set_error_from_current_exception();
    return false;
  }
}

}  // namespace tn::py
