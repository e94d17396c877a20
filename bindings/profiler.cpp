// torch.autograd.profiler and torch.profiler: torch._C._profiler's configuration, torch._C._autograd's switches and
// events. What is recorded lies in runtime/profile.h.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cxxabi.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/convert.h"
#include "bindings/names/names.h"
#include "bindings/object_type.h"
#include "bindings/observe.h"
#include "bindings/py.h"
#include "runtime/profile.h"
#include "runtime/refuse.h"

namespace tn::py {
namespace {

namespace pb = pybind11;

// ---- configuration -------------------------------------------------------------------------------------------------

// All of its options are for devices' tracers, but the last two of these.
struct Experimental {
  pb::dict options;
};
struct Config {
  std::string state;
  bool shapes, memory, stack, flops, modules;
  std::string trace_id;
};

pb::dict experimental_defaults() {
  using namespace pb::literals;
  return pb::dict("profiler_metrics"_a = pb::list(), "profiler_measure_per_kernel"_a = false, "verbose"_a = false,
                  "performance_events"_a = pb::list(), "enable_cuda_sync_events"_a = false,
                  "adjust_profiler_step"_a = false, "disable_external_correlation"_a = false,
                  "profile_all_threads"_a = false, "capture_overload_names"_a = false,
                  "record_python_gc_info"_a = false, "expose_kineto_event_metadata"_a = false,
                  "custom_profiler_config"_a = "", "adjust_timestamps"_a = false, "trace_only"_a = false);
}

Experimental make_experimental(const pb::args& args, const pb::kwargs& kwargs) {
  Experimental made{experimental_defaults()};
  if (args.size() > made.options.size()) throw pb::type_error("_ExperimentalConfig: expected at most 14 arguments");
  size_t at = 0;
  for (const auto& option : experimental_defaults()) {
    if (at == args.size()) break;
    made.options[option.first] = args[at++];
  }
  for (const auto& given : kwargs) {
    if (!made.options.contains(given.first))
      throw pb::type_error("_ExperimentalConfig: got an unexpected keyword argument " +
                           std::string(pb::repr(given.first)));
    made.options[given.first] = given.second;
  }
  return made;
}

Config make_config(const pb::object& state, bool shapes, bool memory, bool stack, bool flops, bool modules,
                   const Experimental&, std::string trace_id) {
  return {pb::cast<std::string>(state.attr("name")), shapes, memory, stack, flops, modules, std::move(trace_id)};
}

// What can't be recorded refuses rather than leave holes in the profile.
void check_config(const Config& c) {
  if (c.state != "KINETO" && c.state != "CPU")
    refuse("torch._C._autograd._enable_profiler", "ProfilerState." + c.state, "there is no such tracer on the CPU");
  if (c.memory) refuse("torch._C._autograd._enable_profiler", "profile_memory", "allocations are not recorded");
  if (c.stack) refuse("torch._C._autograd._enable_profiler", "with_stack", "Python's stacks are not recorded");
}

// ---- events --------------------------------------------------------------------------------------------------------

struct Run {
  profile::Result result;
  std::vector<std::pair<std::string, std::string>> metadata;
};
struct KinetoEvent {
  std::shared_ptr<const Run> run;
  size_t index;
  const profile::Event* operator->() const { return &run->result.events[index]; }
};

constinit std::vector<std::pair<std::string, std::string>>* metadata = nullptr;
constinit std::string* trace_id = nullptr;

pb::object tensor_lists(const KinetoEvent& e, bool strides) {
  pb::list all;
  for (const profile::Input& i : e->inputs) {
    const auto& parts = strides ? i.strides : i.sizes;
    if (i.is_list) all.append(pb::cast(parts));
    else if (parts.empty()) all.append(pb::list());
    else all.append(pb::cast(parts[0]));
  }
  return all;
}
pb::list shapes(const KinetoEvent& e) {
  pb::list all;
  for (const profile::Input& i : e->inputs)
    all.append(i.is_list || i.sizes.empty() ? pb::list() : pb::list(pb::cast(i.sizes[0])));
  return all;
}
pb::list concrete(const KinetoEvent& e) {
  pb::list all;
  for (const profile::Input& i : e->inputs) {
    PyObject* const value = arg_to_python(i.number.arg(), {});
    if (!value) throw pb::error_already_set();
    all.append(pb::reinterpret_steal<pb::object>(value));
  }
  return all;
}
std::vector<std::string> dtypes(const KinetoEvent& e) {
  std::vector<std::string> all;
  for (const profile::Input& i : e->inputs) all.push_back(i.type);
  return all;
}
pb::object cpu_type() {
  static const EnumType type = find_enum("_autograd.DeviceType");
  return pb::reinterpret_borrow<pb::object>(enum_member(type, 0));
}
bool is_user(const KinetoEvent& e) { return e->scope == profile::Scope::User; }
int64_t number_of(const KinetoEvent& e) { return static_cast<int64_t>(e.index) + 1; }

template <class T>
auto constant(T value) {
  return [value](const KinetoEvent&) { return value; };
}

void bind_events(pb::module_& m) {
  pb::class_<KinetoEvent>(m, "_KinetoEvent")
      .def("name", [](const KinetoEvent& e) { return std::string(e->text()); })
      .def("overload_name", [](const KinetoEvent& e) { return std::string(e->op ? e->op->overload : ""); })
      .def("start_ns", [](const KinetoEvent& e) { return e->start; })
      .def("end_ns", [](const KinetoEvent& e) { return e->end; })
      .def("duration_ns", [](const KinetoEvent& e) { return e->end - e->start; })
      .def("start_thread_id", [](const KinetoEvent& e) { return e->thread; })
      .def("end_thread_id", [](const KinetoEvent& e) { return e->end_thread; })
      .def("fwd_thread_id", [](const KinetoEvent& e) { return e->forward_thread; })
      .def("device_resource_id", [](const KinetoEvent& e) { return e->thread; })
      .def("is_async", [](const KinetoEvent& e) { return e->thread != e->end_thread; })
      .def("scope", [](const KinetoEvent& e) { return static_cast<int>(e->scope); })
      .def("sequence_nr", [](const KinetoEvent& e) { return e->sequence; })
      .def("flops", [](const KinetoEvent& e) { return e->flops; })
      .def("shapes", shapes)
      .def("structured_input_shapes", [](const KinetoEvent& e) { return tensor_lists(e, false); })
      .def("structured_input_strides", [](const KinetoEvent& e) { return tensor_lists(e, true); })
      .def("dtypes", dtypes)
      .def("concrete_inputs", concrete)
      .def("kwinputs", [](const KinetoEvent&) { return pb::dict(); })
      .def("stack", [](const KinetoEvent&) { return pb::list(); })
      .def("correlation_id", number_of)
      .def("external_id", number_of)
      .def("activity_type", [](const KinetoEvent& e) { return is_user(e) ? "user_annotation" : "cpu_op"; })
      .def("is_user_annotation", is_user)
      .def("device_type", [](const KinetoEvent&) { return cpu_type(); })
      .def("extra_meta", [](const KinetoEvent&) { return pb::dict(); })
      .def("metadata_json", constant(""))
      .def("device_index", constant(-1))
      .def("linked_correlation_id", constant(0))
      .def("nbytes", constant(0))
      .def("flow_id", constant(0))
      .def("flow_type", constant(0))
      .def("flow_start", constant(false))
      .def("is_hidden_event", constant(false))
      .def("is_python_function", constant(false))
      .def("python_id", constant(-1))
      .def("python_parent_id", constant(-1))
      .def("python_module_id", constant(-1))
      .def("cuda_elapsed_us", constant(-1))
      .def("privateuse1_elapsed_us", constant(-1));
}

// ---- the trace as a file -------------------------------------------------------------------------------------------

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') (out += '\\') += c;
    else if (static_cast<unsigned char>(c) >= 0x20) out += c;
    else {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
      out += escaped;
    }
  }
  return out += '"';
}
std::string microseconds(int64_t ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%lld.%03lld", static_cast<long long>(ns / 1000), static_cast<long long>(ns % 1000));
  return text;
}
// The values of one property of each input, as a JSON list.
template <class F>
std::string listed(const std::vector<profile::Input>& inputs, F&& text_of) {
  std::string out = "[";
  for (const profile::Input& i : inputs) out.append(out.size() > 1 ? ", " : "").append(text_of(i));
  return out + "]";
}
std::string numbers(const std::vector<int64_t>& values) {
  std::string out = "[";
  for (int64_t v : values) out.append(out.size() > 1 ? ", " : "").append(std::to_string(v));
  return out + "]";
}
std::string geometry(const std::vector<std::vector<int64_t>>& parts, bool is_list) {
  if (!is_list) return parts.empty() ? "[]" : numbers(parts[0]);
  std::string out = "[";
  for (const auto& p : parts) out.append(out.size() > 1 ? ", " : "").append(numbers(p));
  return out + "]";
}
std::string event_json(const profile::Event& e, size_t index) {
  std::string args = str("\"External id\": ", index + 1, ", \"Ev Idx\": ", index);
  if (e.sequence >= 0) args += str(", \"Sequence number\": ", e.sequence, ", \"Fwd thread id\": ", e.forward_thread);
  if (!e.inputs.empty()) {
    args += ", \"Input Dims\": " + listed(e.inputs, [](const auto& i) { return geometry(i.sizes, i.is_list); });
    args += ", \"Input Strides\": " + listed(e.inputs, [](const auto& i) { return geometry(i.strides, i.is_list); });
    args += ", \"Input type\": " + listed(e.inputs, [](const auto& i) { return quoted(i.type); });
  }
  return str("{\"ph\": \"X\", \"cat\": \"", e.scope == profile::Scope::User ? "user_annotation" : "cpu_op",
             "\", \"name\": ", quoted(e.text()), ", \"pid\": 0, \"tid\": ", e.thread,
             ", \"ts\": ", microseconds(e.start), ", \"dur\": ", microseconds(e.end - e.start), ", \"args\": {", args,
             "}}");
}
void save(const Run& run, const std::string& path) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "w"), std::fclose);
  TN_CHECK(file, "_ProfilerResult.save: can't write ", path);
  std::string text = "{\"schemaVersion\": 1, \"displayTimeUnit\": \"ms\", \"deviceProperties\": []";
  if (!run.result.trace_id.empty()) text += ", \"trace_id\": " + quoted(run.result.trace_id);
  for (const auto& [key, json] : run.metadata) text.append(", ").append(quoted(key)).append(": ").append(json);
  text += ", \"traceEvents\": [\n";
  for (size_t i = 0; i < run.result.events.size(); ++i)
    text.append(i ? ",\n" : "").append(event_json(run.result.events[i], i));
  text += "\n]}\n";
  TN_CHECK(std::fwrite(text.data(), 1, text.size(), file.get()) == text.size(), "_ProfilerResult.save: can't write ",
           path);
}

// ---- switches ------------------------------------------------------------------------------------------------------

std::shared_ptr<Run> disable() {
  auto run = std::make_shared<Run>(Run{profile::session().stop(), {}});
  if (trace_id) run->result.trace_id = *trace_id;
  if (metadata) run->metadata = std::move(*metadata);
  if (metadata) metadata->clear();
  return run;
}

void bind_switches(pb::module_& m) {
  m.def(
      "_prepare_profiler",
      [](const Config& c, const pb::object&, const pb::object&) {
        check_config(c);
        if (!trace_id) trace_id = new std::string;
        *trace_id = c.trace_id;
      },
      pb::arg("config"), pb::arg("activities"), pb::arg("activity_filter") = pb::dict());
  m.def(
      "_enable_profiler",
      [](const Config& c, const pb::object&, const pb::object&) {
        check_config(c);
        profile::session().start({.shapes = c.shapes, .flops = c.flops});
      },
      pb::arg("config"), pb::arg("activities"), pb::arg("scopes") = pb::set());
  m.def("_disable_profiler", disable);
  m.def("_profiler_enabled", [] { return profile::active != nullptr; });
  m.def("_profiler_type", [] {
    static const EnumType type = find_enum("_profiler.ActiveProfilerType");
    constexpr long kNone = 0, kKineto = 2;
    return pb::reinterpret_borrow<pb::object>(enum_member(type, profile::active ? kKineto : kNone));
  });
  m.def("_supported_activities", [] {
    static const EnumType type = find_enum("_profiler.ProfilerActivity");
    pb::set only;
    only.add(pb::reinterpret_borrow<pb::object>(enum_member(type, 0)));
    return only;
  });
  m.def("_add_metadata_json", [](std::string key, std::string json) {
    if (!metadata) metadata = new std::vector<std::pair<std::string, std::string>>;
    metadata->emplace_back(std::move(key), std::move(json));
  });
  m.def("kineto_available", [] { return true; });
  m.def("_kineto_step", [] {});
  m.def("_record_function_with_args_enter", [](std::string name, const pb::args&) -> pb::object {
    return pb::int_(profile::active ? profile::session().open(std::move(name), profile::Scope::User) : 0);
  });
  m.def("_record_function_with_args_exit",
        [](const pb::int_& range) { profile::session().close(pb::cast<profile::Range>(range)); });
}

void bind_results(pb::module_& m) {
  pb::class_<Run, std::shared_ptr<Run>>(m, "_ProfilerResult")
      .def("trace_start_ns", [](const Run& r) { return r.result.start; })
      .def("events",
           [](const std::shared_ptr<Run>& r) {
             std::vector<KinetoEvent> events;
             for (size_t i = 0; i < r->result.events.size(); ++i) events.push_back({r, i});
             return events;
           })
      .def("save", [](const Run& r, const std::string& path) { save(r, path); })
      .def("experimental_event_tree",
           [](const Run&) -> pb::object {
             refuse("torch._C._autograd._ProfilerResult.experimental_event_tree", "call", "events are kept as a list");
           })
      .def("trace_activities", [](const Run&) -> pb::object {
        refuse("torch._C._autograd._ProfilerResult.trace_activities", "call", "there are no devices' activities");
      });
}

void bind_configuration(pb::module_& m) {
  pb::class_<Experimental>(m, "_ExperimentalConfig")
      .def(pb::init(&make_experimental))
      .def_property(
          "trace_only", [](const Experimental& e) -> pb::object { return e.options["trace_only"]; },
          [](Experimental& e, bool on) { e.options["trace_only"] = on; })
      .def_property(
          "custom_profiler_config",
          [](const Experimental& e) -> pb::object { return e.options["custom_profiler_config"]; },
          [](Experimental& e, const std::string& text) { e.options["custom_profiler_config"] = text; })
      .def(pb::pickle([](const Experimental& e) { return pb::make_tuple(e.options); },
                      [](const pb::tuple& state) {
                        return Experimental{pb::dict(pb::reinterpret_borrow<pb::dict>(state[0]).attr("copy")())};
                      }));
  pb::class_<Config>(m, "ProfilerConfig")
      .def(pb::init(&make_config), pb::arg("state"), pb::arg("report_input_shapes"), pb::arg("profile_memory"),
           pb::arg("with_stack"), pb::arg("with_flops"), pb::arg("with_modules"), pb::arg("experimental_config"),
           pb::arg("trace_id") = "");
}

// _RecordFunctionFast(name, input_values=None, keyword_values=None): a range without the way through an operator.
struct FastRange {
  PyObject_HEAD PyObject* name;
  profile::Range range;
};
PyObject* fast_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"name", "input_values", "keyword_values", nullptr};
  PyObject *name, *inputs = nullptr, *keywords = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "U|OO:_RecordFunctionFast", const_cast<char**>(names), &name, &inputs,
                                   &keywords))
    return nullptr;
  PyObject* const self = type->tp_alloc(type, 0);
  if (self) reinterpret_cast<FastRange*>(self)->name = Py_NewRef(name);
  return self;
}
void fast_dealloc(PyObject* self) {
  Py_DECREF(reinterpret_cast<FastRange*>(self)->name);
  Py_TYPE(self)->tp_free(self);
}
PyObject* fast_enter(PyObject* self, PyObject*) {
  auto* const r = reinterpret_cast<FastRange*>(self);
  if (profile::active) {
    const char* const name = PyUnicode_AsUTF8(r->name);
    if (!name) return nullptr;
    r->range = profile::session().open(name, profile::Scope::Function);
  }
  Py_RETURN_NONE;
}
PyObject* fast_exit(PyObject* self, PyObject*) {
  if (const profile::Range range = std::exchange(reinterpret_cast<FastRange*>(self)->range, 0))
    profile::session().close(range);
  Py_RETURN_NONE;
}
PyMethodDef fast_methods[] = {{"__enter__", fast_enter, METH_NOARGS, nullptr},
                              {"__exit__", fast_exit, METH_VARARGS, nullptr},
                              {nullptr, nullptr, 0, nullptr}};
PyTypeObject fast_type{};
bool add_fast_range(PyObject* module) {
  fast_type.tp_new = fast_new;
  fast_type.tp_dealloc = fast_dealloc;
  fast_type.tp_methods = fast_methods;
  return ready_type(fast_type, "torch._C._profiler.RecordFunctionFast", sizeof(FastRange), Py_TPFLAGS_DEFAULT) &&
         add_to_module(module, "_RecordFunctionFast", fast_type);
}

// The C++ type that a mangled name stands for; other text as it is.
std::string demangle(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                    std::free);
  return text && status == 0 ? std::string(text.get()) : name;
}

void forget(pb::module_& m, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (pb::hasattr(m, name)) pb::delattr(m, name);  // the table's inert class or function of that name
}

}  // namespace

bool bind_profiler(PyObject* module) {
  try {
    auto core = pb::reinterpret_borrow<pb::module_>(module);
    auto profiler = pb::reinterpret_borrow<pb::module_>(core.attr("_profiler"));
    auto autograd = pb::reinterpret_borrow<pb::module_>(core.attr("_autograd"));
    forget(profiler, {"_ExperimentalConfig", "ProfilerConfig", "_RecordFunctionFast"});
    if (!add_fast_range(profiler.ptr())) return false;
    forget(autograd,
           {"_KinetoEvent", "_ProfilerResult", "_prepare_profiler", "_enable_profiler", "_disable_profiler",
            "_profiler_enabled", "_profiler_type", "_supported_activities", "_add_metadata_json", "kineto_available",
            "_kineto_step", "_record_function_with_args_enter", "_record_function_with_args_exit"});
    bind_configuration(profiler);
    bind_events(autograd);
    bind_results(autograd);
    bind_switches(autograd);
    forget(core, {"_demangle"});
    core.def("_demangle", demangle);
    return true;
  } catch (...) {
    set_error_from_current_exception();
    return false;
  }
}

}  // namespace tn::py
