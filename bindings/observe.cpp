// torch._C._torchnative: what torchnative adds to the core's surface. Upstream has no such module.
#include "bindings/observe.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <vector>

#include "bindings/py.h"
#include "bindings/tensor.h"
#include "runtime/observe.h"
#include "runtime/refuse.h"
#include "runtime/threads.h"

namespace tn::py {
namespace {

namespace pb = pybind11;

Tensor tensor_from(const pb::handle& object) {
  if (!is_tensor(object.ptr()))
    throw pb::type_error("expected a Tensor, got " + std::string(pb::repr(pb::type::of(object))));
  return tensor_of(object.ptr());
}
std::string name_of(const OpRow& op) { return str(op.info->name, *op.info->overload ? "." : "", op.info->overload); }

std::vector<pb::object> replay(const Recorder& run, const std::vector<std::pair<pb::object, pb::object>>& inputs,
                               const std::vector<pb::object>& outputs) {
  std::vector<std::pair<int64_t, Tensor>> given;
  for (const auto& [old, now] : inputs) given.emplace_back(run.number_of(tensor_from(old)), tensor_from(now));
  std::vector<int64_t> wanted;
  for (const pb::object& o : outputs) wanted.push_back(run.number_of(tensor_from(o)));
  std::vector<pb::object> results;
  for (const Tensor& t : run.replay(given, wanted)) results.push_back(pb::reinterpret_steal<pb::object>(wrap(t)));
  return results;
}

}  // namespace

bool bind_observe(PyObject* module) {
  try {
    auto core = pb::reinterpret_borrow<pb::module_>(module);
    pb::module_ m = core.def_submodule("_torchnative", "What torchnative's core offers beyond upstream's torch._C.");
    m.attr("__name__") = "torch._C._torchnative";
    pb::class_<Recorder>(m, "Recorder")
        .def(pb::init<>())
        .def("attach", [](Recorder& r) { attach_observer(r); })
        .def("detach", [](Recorder& r) { detach_observer(r); })
        .def("__len__", [](const Recorder& r) { return r.calls().size(); })
        .def("ops",
             [](const Recorder& r) {
               std::vector<std::string> names;
               for (const Recorder::Call& c : r.calls()) names.push_back(name_of(*c.op));
               return names;
             })
        .def("replay", replay, pb::arg("inputs"), pb::arg("outputs"));
    m.def("refusals", &refusal_count, "How often something was refused since the start.");
    return true;
  } catch (...) {
    set_error_from_current_exception();
    return false;
  }
}

}  // namespace tn::py
