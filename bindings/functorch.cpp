#include "bindings/functorch.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>
#include <string>

#include "bindings/names/names.h"
#include "bindings/tensor.h"
#include "generated/ops/movedim.h"
#include "generated/ops/reshape.h"
#include "kernels/vmap/vmap.h"
#include "runtime/autograd/forward.h"
#include "runtime/func/layers.h"
#include "runtime/refuse.h"

namespace tn::py {
namespace {

namespace pb = pybind11;
using func::Layer;
using func::Transform;

bool inplace_requires_grad_allowed = false;
constinit thread_local size_t older_vmaps = 0;  // layers of torch._vmap_internals, inside of which graphs are built

const Tensor& tensor_argument(const pb::handle& object, const char* name) {
  if (!is_tensor(object.ptr()))
    throw pb::type_error(std::string(name) + ": expected a Tensor, got " + Py_TYPE(object.ptr())->tp_name);
  return tensor_of(object.ptr());
}
pb::object tensor_object(Tensor t) {
  return pb::reinterpret_steal<pb::object>(PyRef::check(wrap(std::move(t))).release());
}

pb::object member(const char* name, long value) {
  PyObject* const found = enum_member(find_enum(name), value);
  return found ? pb::reinterpret_borrow<pb::object>(found) : pb::none();
}
pb::object transform_object(Transform t) { return member("_functorch.TransformType", static_cast<long>(t)); }

func::Randomness randomness_of(const std::string& text) {
  if (text == "error") return func::Randomness::Error;
  if (text == "same") return func::Randomness::Same;
  if (text == "different") return func::Randomness::Different;
  throw Error(ErrorKind::Runtime, "randomness argument must be error, same, or different.");
}

const func::Wrapper* wrapper_of(const pb::handle& object, const char* name) {
  return is_tensor(object.ptr()) ? tensor_argument(object, name)->wrapper : nullptr;
}

// The interpreters that Python sees: what it asks of a layer.
struct Interpreter {
  Layer layer;
};
template <int kKind>
struct Typed : Interpreter {};

template <class C>
void def_common(pb::class_<C>& c) {
  c.def("key", [](const C& i) { return transform_object(i.layer.transform); });
  c.def("level", [](const C& i) { return i.layer.level; });
}
template <int kKind>
pb::class_<Typed<kKind>> typed(pb::module_& m, const char* name) {
  pb::class_<Typed<kKind>> c(m, name, pb::module_local());
  c.def(pb::init([](const Interpreter& i) { return Typed<kKind>{{i.layer}}; }));
  def_common(c);
  return c;
}
template <class C>
pb::object lift(const C& i, const pb::handle& t) {
  const Tensor& tensor = tensor_argument(t, "lift");
  if (func::wrapper_at(tensor, i.layer.level)) return pb::reinterpret_borrow<pb::object>(t);
  return tensor_object(func::wrap_for_grad(tensor, i.layer));
}

void bind_classes(pb::module_& m) {
  pb::class_<Layer>(m, "DynamicLayer", pb::module_local());
  pb::class_<Interpreter> interpreter(m, "CInterpreter", pb::module_local());
  def_common(interpreter);
  const auto refuse_text = [](const pb::args&) -> pb::object {
    refuse("torch._C._functorch.CInterpreter", "its state as text",
           "only torch.compile needs it, which is not part of torchnative");
  };
  interpreter.def("serialize", refuse_text);
  interpreter.def_static("deserialize", refuse_text);
  auto grad = typed<2>(m, "CGradInterpreterPtr");
  grad.def("lift", &lift<Typed<2>>);
  grad.def("prevGradMode", [](const Typed<2>& i) { return i.layer.previous_grad_mode; });
  auto jvp = typed<3>(m, "CJvpInterpreterPtr");
  jvp.def("lift", &lift<Typed<3>>);
  jvp.def("prevFwdGradMode", [](const Typed<3>& i) { return i.layer.previous_fw_grad_mode; });
  auto vmap = typed<1>(m, "CVmapInterpreterPtr");
  vmap.def("batchSize", [](const Typed<1>& i) { return i.layer.batch_size; });
  vmap.def("randomness", [](const Typed<1>& i) {
    return member("_functorch.RandomnessType", static_cast<long>(i.layer.randomness));
  });
  auto functionalize = typed<4>(m, "CFunctionalizeInterpreterPtr");
  functionalize.def("functionalizeAddBackViews", [](const Typed<4>&) { return false; });
}

void bind_nesting(pb::module_& m) {
  m.def("_grad_increment_nesting", [] { return func::begin(Transform::Grad); });
  m.def("_grad_decrement_nesting", [] { return func::end(Transform::Grad).level; });
  m.def("_jvp_increment_nesting", [] { return func::begin(Transform::Jvp); });
  m.def("_jvp_decrement_nesting", [] { return func::end(Transform::Jvp).level; });
  m.def("_vmap_increment_nesting", [](int64_t batch_size, const std::string& randomness) {
    return func::begin(Transform::Vmap, batch_size, randomness_of(randomness));
  });
  m.def("_vmap_decrement_nesting", [] { return func::end(Transform::Vmap).level; });
  m.def("get_dynamic_layer_stack_depth", [] { return func::layers().size(); });
  m.def("current_level", [] {
    TN_CHECK(!func::layers().empty(), "expected a running function transform, got none");
    return func::layers().back().level;
  });
  m.def("maybe_current_level", []() -> std::optional<int64_t> {
    if (func::layers().empty()) return std::nullopt;
    return func::layers().back().level;
  });
  m.def("peek_interpreter_stack", []() -> std::optional<Interpreter> {
    if (func::layers().empty()) return std::nullopt;
    return Interpreter{func::layers().back()};
  });
  m.def("get_interpreter_stack", []() -> pb::object {
    if (func::layers().empty()) return pb::none();
    pb::list all;
    for (const Layer& layer : func::layers()) all.append(pb::cast(Interpreter{layer}));
    return all;
  });
  m.def("pop_dynamic_layer_stack", [] { return func::take_off(); });
  m.def("push_dynamic_layer_stack", [](const Layer& layer) {
    func::put_on(layer);
    return layer.level;
  });
  m.def("pop_dynamic_layer_stack_and_undo_to_depth", [](size_t depth) {
    while (func::layers().size() > depth) func::end(func::layers().back().transform);
  });
  m.def("_set_dynamic_layer_keys_included", [](bool on) {
    const uint64_t both = func::keys::kFront.raw() | func::keys::kBack.raw();
    thread_state.included = on ? thread_state.included | both : thread_state.included & ~both;
  });
  m.def("tls_set_vmap_excluded", [](bool on) {
    const uint64_t key = func::keys::kBatched.raw();
    thread_state.excluded = on ? thread_state.excluded | key : thread_state.excluded & ~key;
  });
}

void bind_wrappers(pb::module_& m) {
  m.def("_wrap_for_grad", [](const pb::object& object, int64_t level) {
    const Tensor& t = tensor_argument(object, "_wrap_for_grad");
    for (const Layer& layer : func::layers())
      if (layer.level == level) return tensor_object(func::wrap_for_grad(t, layer));
    throw Error(ErrorKind::Runtime, str("_wrap_for_grad: expected the level of a running transform, got ", level));
  });
  m.def("_unwrap_for_grad", [](const pb::object& object, int64_t level) {
    const func::Wrapper* const w = func::wrapper_at(tensor_argument(object, "_unwrap_for_grad"), level);
    return w && !w->batched() ? tensor_object(w->value) : object;
  });
  m.def("_add_batch_dim", [](const pb::object& object, int64_t dim, int64_t level) {
    const Tensor& t = tensor_argument(object, "_add_batch_dim");
    return tensor_object(func::wrap_batched(t, wrap_dim(dim, t.dim()), level));
  });
  m.def("_remove_batch_dim",
        [](const pb::object& object, int64_t level, const pb::object& batch_size, int64_t out_dim) {
          return tensor_object(vmap::remove_batch_dim(tensor_argument(object, "_remove_batch_dim"), level,
                                                      pb::cast<int64_t>(batch_size), out_dim));
        });
  m.def("_unwrap_batched", [](const pb::object& object, int64_t level) -> pb::tuple {
    const func::Wrapper* const w = func::wrapper_at(tensor_argument(object, "_unwrap_batched"), level);
    if (!w || !w->batched()) return pb::make_tuple(object, pb::none());
    return pb::make_tuple(tensor_object(w->value), w->batch_dim);
  });
  m.def("unwrap_if_dead", [](const pb::object& object) {
    const Tensor& t = tensor_argument(object, "unwrap_if_dead");
    return func::is_dead(t) ? tensor_object(func::unwrap_dead(t)) : object;
  });
  m.def("get_unwrapped", [](const pb::object& object) {
    const func::Wrapper* const w = wrapper_of(object, "get_unwrapped");
    TN_CHECK(w, "No wrappers present!");
    return tensor_object(w->value);
  });
  m.def("is_batchedtensor", [](const pb::object& object) {
    const func::Wrapper* const w = wrapper_of(object, "is_batchedtensor");
    return w && w->batched();
  });
  m.def("is_legacy_batchedtensor", [](const pb::object&) { return false; });
  m.def("is_gradtrackingtensor", [](const pb::object& object) {
    const func::Wrapper* const w = wrapper_of(object, "is_gradtrackingtensor");
    return w && !w->batched();
  });
  m.def("is_functionaltensor", [](const pb::object&) { return false; });
  m.def("is_functorch_wrapped_tensor",
        [](const pb::object& object) { return wrapper_of(object, "is_functorch_wrapped_tensor") != nullptr; });
  m.def("is_dead_tensor_wrapper",
        [](const pb::object& object) { return func::is_dead(tensor_argument(object, "is_dead_tensor_wrapper")); });
  m.def("maybe_get_level", [](const pb::object& object) {
    const func::Wrapper* const w = wrapper_of(object, "maybe_get_level");
    return w ? w->level : -1;
  });
  m.def("maybe_get_bdim", [](const pb::object& object) {
    const func::Wrapper* const w = wrapper_of(object, "maybe_get_bdim");
    return w ? w->batch_dim : -1;
  });
  m.def("reshape_dim_into", [](int64_t from, int64_t into, const pb::object& object) {
    const Tensor& x = tensor_argument(object, "reshape_dim_into");
    const int64_t source = wrap_dim(from, x.dim()), target = wrap_dim(into, x.dim() - 1);
    std::vector<int64_t> sizes = x.sizes().vec();
    sizes.erase(sizes.begin() + source);
    sizes[static_cast<size_t>(target)] *= x.size(source);
    return tensor_object(at::reshape(at::movedim(x, source, target), sizes));
  });
  m.def("reshape_dim_outof", [](int64_t from, int64_t size, const pb::object& object) {
    const Tensor& x = tensor_argument(object, "reshape_dim_outof");
    const int64_t source = wrap_dim(from, x.dim());
    std::vector<int64_t> sizes = x.sizes().vec();
    sizes.insert(sizes.begin() + source, size);
    sizes[static_cast<size_t>(source + 1)] /= size;
    return tensor_object(at::reshape(x, sizes));
  });
}

void bind_switches(pb::module_& m) {
  m.def("set_inplace_requires_grad_allowed", [](bool on) { inplace_requires_grad_allowed = on; });
  m.def("get_inplace_requires_grad_allowed", [] { return inplace_requires_grad_allowed; });
  m.def("_set_vmap_fallback_enabled", [](bool on) { vmap::fallback_enabled = on; });
  m.def("_is_vmap_fallback_enabled", [] { return vmap::fallback_enabled; });
  m.def("_set_vmap_fallback_warning_enabled", [](bool on) { vmap::fallback_warns = on; });
}

}  // namespace

void check_requires_grad_allowed() {
  if (!func::active() || inplace_requires_grad_allowed || func::layers().size() == older_vmaps) return;
  fail(ErrorKind::Runtime,
       "You are attempting to call Tensor.requires_grad_() (or perhaps using torch.autograd.functional.* APIs) inside "
       "of a function being "
       "transformed by a functorch transform. This is unsupported, please attempt to use the functorch transforms "
       "(e.g. grad, vjp, jacrev, "
       "jacfwd, hessian) or call requires_grad_() outside of a function being transformed instead.");
}

bool bind_functorch(PyObject* module) {
  try {
    auto core = pb::reinterpret_borrow<pb::module_>(module);
    auto m = pb::reinterpret_borrow<pb::module_>(core.attr("_functorch"));
    for (const char* name : {"DynamicLayer", "CInterpreter", "CGradInterpreterPtr", "CJvpInterpreterPtr",
                             "CVmapInterpreterPtr", "CFunctionalizeInterpreterPtr"})
      if (pb::hasattr(m, name)) pb::delattr(m, name);  // the table's inert class of that name
    bind_classes(m);
    bind_nesting(m);
    bind_wrappers(m);
    bind_switches(m);
    core.def("_enter_dual_level", [] { return forward::enter_level(); });
    core.def("_exit_dual_level", [](int64_t level) { forward::exit_level(level); }, pb::arg("level"));
    core.def("_are_functorch_transforms_active", [] { return func::layers().size() > older_vmaps; });
    // The older vmap learns its batch size from its first argument.
    core.def("_vmapmode_increment_nesting", [] {
      ++older_vmaps;
      const int64_t level = func::begin(Transform::Vmap, -1);
      func::layers().back().older = true;
      return level;
    });
    core.def("_vmapmode_decrement_nesting", [] {
      --older_vmaps;
      return func::end(Transform::Vmap).level - 1;
    });
    core.def("_debug_only_display_vmap_fallback_warnings", [](bool on) { vmap::fallback_warns = on; });
    core.def("_debug_only_are_vmap_fallback_warnings_enabled", [] { return vmap::fallback_warns; });
    return true;
  } catch (...) {
    set_error_from_current_exception();
    return false;
  }
}

}  // namespace tn::py
