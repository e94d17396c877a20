// DispatchKeySet, the thread's key sets and the guards over them.
#include "bindings/dispatch.h"

#include <pybind11/pybind11.h>

#include <optional>
#include <string>
#include <vector>

#include "bindings/names/names.h"
#include "bindings/tensor.h"
#include "runtime/door.h"

namespace tn::py {
namespace {

namespace pb = pybind11;

EnumType key_enum() {
  static const EnumType found = find_enum("DispatchKey");
  return found;
}
pb::object key_object(DispatchKey key) {
  PyObject* const member = enum_member(key_enum(), static_cast<long>(key));
  return member ? pb::reinterpret_borrow<pb::object>(member) : pb::none();
}
DispatchKey key_of(const pb::handle& object) {
  long value = 0;
  if (enum_value(key_enum(), object.ptr(), &value)) return static_cast<DispatchKey>(value);
  if (!pb::isinstance<pb::str>(object))
    throw pb::type_error("expected a DispatchKey or its name, got " + std::string(pb::repr(object)));
  DispatchKey key;
  const std::string name = pb::cast<std::string>(object);
  if (!parse_key(name, &key)) throw Error(ErrorKind::Runtime, "could not parse dispatch key: " + name);
  return key;
}

// Upstream's keyset of a key: alias keys have none, Autograd stands for all of autograd.
KeySet set_of(DispatchKey key) { return KeySet(key); }

std::string keyset_text(KeySet keys) {
  std::string text = "DispatchKeySet(";
  bool first = true;
  const auto add = [&](DispatchKey key) {
    text.append(first ? "" : ", ").append(key_name(key));
    first = false;
  };
  for (int f = 1; f < kNumFunctionalities; ++f) {
    const auto functionality = static_cast<DispatchKey>(f);
    if ((keys.raw() >> (kNumBackends + f - 1) & 1) == 0) continue;
    if (!is_per_backend(functionality)) {
      add(functionality);
      continue;
    }
    for (int b = 1; b <= kNumBackends; ++b)
      if (keys.raw() >> (b - 1) & 1) add(runtime_key(functionality, b));
  }
  return text + ")";
}

constexpr KeySet kFull(((uint64_t{1} << (kNumBackends + kNumFunctionalities - 1)) - 1));

KeySet backends_behind_autograd() {
  KeySet keys;
  for (DispatchKey f :
       {DispatchKey::FPGA, DispatchKey::Vulkan, DispatchKey::Metal, DispatchKey::Quantized, DispatchKey::CustomRNGKeyId,
        DispatchKey::MkldnnCPU, DispatchKey::Sparse, DispatchKey::SparseCsr})
    keys = keys | f;
  return KeySet(keys.raw() | KeySet::kBackendMask);
}

// Saves the thread's sets and changes them; __exit__ puts back what was there.
class Guard {
 public:
  Guard(KeySet include, KeySet exclude, bool replace_exclude = false)
      : include_(include), exclude_(exclude), replace_exclude_(replace_exclude) {}
  void enter() {
    ThreadState& state = thread_state;
    saved_.emplace_back(state.included, state.excluded);
    state.included |= include_.raw();
    if (replace_exclude_) state.excluded = exclude_.raw() | (state.excluded & KeySet::kOurs);
    else state.excluded |= exclude_.raw();
  }
  void exit() {
    const auto [included, excluded] = saved_.back();
    saved_.pop_back();
    ThreadState& state = thread_state;
    state.included = included;
    state.excluded = (excluded & ~KeySet::kOurs) | (state.excluded & KeySet::kOurs);
  }

 protected:
  KeySet include_, exclude_;
  bool replace_exclude_;
  std::vector<std::pair<uint64_t, uint64_t>> saved_;
};
// Sets both to given values.
class ForceGuard : public Guard {
 public:
  ForceGuard(KeySet include, KeySet exclude) : Guard(include, exclude, true) {}
  void enter() {
    Guard::enter();
    thread_state.included = include_.raw();
  }
};

template <class G, class... Init>
void bind_guard(pb::module_& m, const char* name, Init&&... init) {
  pb::class_<G> cls(m, name);
  (cls.def(std::forward<Init>(init)), ...);
  cls.def("__enter__", [](G& g) { g.enter(); }).def("__exit__", [](G& g, const pb::args&) { g.exit(); });
}
// Upstream's older guards act from construction on, until __exit__ or until the object dies.
class EagerGuard : public Guard {
 public:
  EagerGuard(KeySet include, KeySet exclude) : Guard(include, exclude) { Guard::enter(); }
  EagerGuard(EagerGuard&& o) noexcept : Guard(std::move(o)) { o.saved_.clear(); }
  EagerGuard(const EagerGuard&) = delete;
  EagerGuard& operator=(const EagerGuard&) = delete;
  ~EagerGuard() { exit(); }
  void enter() {}
  void exit() {
    if (!saved_.empty()) Guard::exit();
  }
};
template <int I>
struct Eager : EagerGuard {
  using EagerGuard::EagerGuard;
};
// A class of its own a guard, since pybind11 knows a C++ type under one name.
template <int I>
struct Named : Guard {
  using Guard::Guard;
};

constexpr KeySet kBelowView = KeySet::below(DispatchKey::ADInplaceOrView);
KeySet autograd_keys() {
  return KeySet(DispatchKey::AutogradFunctionality) | DispatchKey::AutogradOther | DispatchKey::AutogradNestedTensor;
}
KeySet python_keys() { return KeySet(DispatchKey::Python) | DispatchKey::PythonTLSSnapshot; }

void set_thread_key(uint64_t& word, DispatchKey key, bool on) {
  const uint64_t bits = KeySet(key).raw() & ~(is_per_backend(key_parts(key).functionality) ? KeySet::kBackendMask : 0);
  word = on ? word | bits : word & ~bits;
}

void bind_keyset(pb::module_& m) {
  pb::class_<KeySet>(m, "DispatchKeySet")
      .def(pb::init([](const pb::object& key) { return set_of(key_of(key)); }))
      .def("__or__", [](KeySet a, KeySet b) { return a | b; })
      .def("__and__", [](KeySet a, KeySet b) { return a & b; })
      .def("__sub__", [](KeySet a, KeySet b) { return KeySet(a.raw() & ~(b.raw() & ~KeySet::kBackendMask)); })
      .def("__eq__", [](KeySet a, KeySet b) { return a == b; })
      .def("__eq__", [](KeySet, const pb::object&) { return false; })
      .def("__hash__", [](KeySet a) { return static_cast<Py_hash_t>(a.raw() >> 1); })
      .def("__repr__", keyset_text)
      .def("highestPriorityTypeId", [](KeySet a) { return key_object(a.highest()); })
      .def("remove", [](KeySet a, const pb::object& key) { return a.remove(key_of(key)); })
      .def("add", [](KeySet a, const pb::object& key) { return a | set_of(key_of(key)); })
      .def("has", [](KeySet a, const pb::object& key) { return a.has(key_of(key)); })
      .def("raw_repr", [](KeySet a) { return a.raw(); })
      .def_static("from_raw_repr", [](uint64_t raw) { return KeySet(raw); })
      .def(pb::pickle([](KeySet a) { return pb::make_tuple(a.raw()); },
                      [](const pb::tuple& t) { return KeySet(t[0].cast<uint64_t>()); }));
  m.attr("_after_autograd_keyset") =
      pb::cast(KeySet(KeySet::below(DispatchKey::ADInplaceOrView).raw() | KeySet(DispatchKey::ADInplaceOrView).raw()));
  m.attr("_after_ADInplaceOrView_keyset") = pb::cast(kBelowView);
  m.attr("_dispatch_autogradother_backends") = pb::cast(backends_behind_autograd());
  KeySet wrappers = KeySet(DispatchKey::Sparse) | DispatchKey::SparseCsr | DispatchKey::Negative |
                    DispatchKey::Conjugate | DispatchKey::NestedTensor | DispatchKey::MkldnnCPU |
                    DispatchKey::Quantized;
  m.attr("_additional_keys_to_prop_for_wrapper_tensors") = pb::cast(wrappers);
}

struct DeviceKey {
  DeviceType type;
  const char* key;
};
constexpr DeviceKey kDeviceKeys[] = {
    {DeviceType::CPU, "CPU"},   {DeviceType::CUDA, "CUDA"},     {DeviceType::Meta, "Meta"},
    {DeviceType::XPU, "XPU"},   {DeviceType::MPS, "MPS"},       {DeviceType::HPU, "HPU"},
    {DeviceType::IPU, "IPU"},   {DeviceType::XLA, "XLA"},       {DeviceType::MTIA, "MTIA"},
    {DeviceType::Lazy, "Lazy"}, {DeviceType::Vulkan, "Vulkan"}, {DeviceType::PrivateUse1, "PrivateUse1"},
    {DeviceType::FPGA, "FPGA"}, {DeviceType::VE, "VE"},         {DeviceType::MAIA, "MAIA"},
    {DeviceType::HIP, "HIP"},   {DeviceType::Metal, "Metal"}};

void bind_key_functions(pb::module_& m) {
  m.def("_parse_dispatch_key", [](const std::string& name) -> pb::object {
    DispatchKey key;
    return parse_key(name, &key) ? key_object(key) : pb::none();
  });
  m.def("_dispatch_key_parse", [](const std::string& name) { return key_object(key_of(pb::str(name))); });
  m.def("_dispatch_key_name", [](const pb::object& key) { return std::string(key_name(key_of(key))); });
  m.def("_dispatch_keyset_full", [] { return kFull; });
  m.def("_dispatch_keyset_full_after", [](const pb::object& key) { return KeySet::below(key_of(key)); });
  m.def("_dispatch_keyset_to_string", keyset_text);
  m.def("_dispatch_get_backend_keyset_from_autograd", [](const pb::object& key) {
    const KeyParts parts = key_parts(key_of(key));
    if (parts.functionality == DispatchKey::AutogradOther) return backends_behind_autograd();
    return parts.backend ? KeySet(runtime_key(DispatchKey::Dense, parts.backend)) : KeySet();
  });
  m.def("_dispatch_num_backends", [] { return kNumBackends; });
  m.def("_to_functionality_key",
        [](const pb::object& key) { return key_object(key_parts(key_of(key)).functionality); });
  m.def("_functionality_to_backend_keys", [](const pb::object& key) {
    const DispatchKey f = key_of(key);
    std::vector<pb::object> keys;
    if (!is_per_backend(f)) return std::vector<pb::object>{key_object(f)};
    for (int b = 1; b <= kNumBackends; ++b) keys.push_back(key_object(runtime_key(f, b)));
    return keys;
  });
  m.def("_dispatch_is_alias_key", [](const pb::object& key) { return key_of(key) >= DispatchKey::Autograd; });
  m.def("_dispatch_is_included_in_alias",
        [](const pb::object& key, const pb::object& alias) { return key_in_alias(key_of(key), key_of(alias)); });
  m.def("_dispatch_keys", [](const pb::handle& t) {
    if (!is_tensor(t.ptr()))
      throw pb::type_error("_dispatch_keys: expected a Tensor, got " + std::string(pb::repr(pb::type::of(t))));
    return KeySet(tensor_of(t.ptr())->keys().raw() & ~KeySet::kOurs);
  });
  m.def("_dispatch_key_set", [](const pb::handle& t) {
    if (!is_tensor(t.ptr()))
      throw pb::type_error("_dispatch_key_set: expected a Tensor, got " + std::string(pb::repr(pb::type::of(t))));
    return keyset_text(tensor_of(t.ptr())->keys());
  });
  m.def("_dispatch_key_for_device", [](const std::string& device) {
    const DeviceType type = Device::parse(device).type;
    for (const DeviceKey& k : kDeviceKeys)
      if (k.type == type) return std::string(k.key);
    throw Error(ErrorKind::Runtime, "_dispatch_key_for_device: expected a device with a dispatch key, got " + device);
  });
  m.def("_dispatch_isTensorSubclassLike", [](const pb::handle& t) {
    const KeySet keys = tensor_of(t.ptr())->keys();
    return keys.has(DispatchKey::Python) || keys.has(DispatchKey::Functionalize) ||
           keys.has(DispatchKey::FuncTorchBatched) || keys.has(DispatchKey::FuncTorchGradWrapper);
  });
}

void bind_thread_state(pb::module_& m) {
  m.def("_dispatch_tls_local_include_set", [] { return KeySet(thread_state.included); });
  m.def("_dispatch_tls_local_exclude_set", [] { return KeySet(thread_state.excluded & ~KeySet::kOurs); });
  m.def("_dispatch_tls_is_dispatch_key_excluded",
        [](const pb::object& key) { return KeySet(thread_state.excluded).has(key_of(key)); });
  m.def("_dispatch_tls_is_dispatch_key_included",
        [](const pb::object& key) { return KeySet(thread_state.included).has(key_of(key)); });
  m.def("_dispatch_tls_set_dispatch_key_excluded",
        [](const pb::object& key, bool on) { set_thread_key(thread_state.excluded, key_of(key), on); });
  m.def("_dispatch_tls_set_dispatch_key_included",
        [](const pb::object& key, bool on) { set_thread_key(thread_state.included, key_of(key), on); });
  m.def("_meta_in_tls_dispatch_include", [] { return KeySet(thread_state.included).has(DispatchKey::Meta); });
  m.def("_set_meta_in_tls_dispatch_include", [](bool on) {
    const uint64_t meta = KeySet(DispatchKey::Meta).raw();
    uint64_t& included = thread_state.included;
    included = on ? included | meta : included & ~(meta & KeySet::kBackendMask);
  });
  bind_guard<Named<0>>(m, "_ExcludeDispatchKeyGuard", pb::init([](KeySet keys) { return Named<0>(KeySet(), keys); }));
  bind_guard<Named<1>>(m, "_IncludeDispatchKeyGuard",
                       pb::init([](const pb::object& key) { return Named<1>(set_of(key_of(key)), KeySet()); }));
  bind_guard<Eager<2>>(m, "_AutoDispatchBelowAutograd", pb::init([] { return Eager<2>(KeySet(), autograd_keys()); }));
  bind_guard<Named<3>>(m, "_AutoDispatchBelowADInplaceOrView",
                       pb::init([] { return Named<3>(KeySet(), autograd_keys() | DispatchKey::ADInplaceOrView); }));
  bind_guard<Eager<4>>(m, "_DisableTorchDispatch", pb::init([] { return Eager<4>(KeySet(), python_keys()); }));
  bind_guard<Eager<5>>(m, "_DisablePythonDispatcher",
                       pb::init([] { return Eager<5>(KeySet(), KeySet(DispatchKey::PythonDispatcher)); }));
  bind_guard<Eager<6>>(m, "_EnablePythonDispatcher",
                       pb::init([] { return Eager<6>(KeySet(DispatchKey::PythonDispatcher), KeySet()); }));
  bind_guard<Eager<7>>(m, "_EnablePreDispatch",
                       pb::init([] { return Eager<7>(KeySet(DispatchKey::PreDispatch), KeySet()); }));
  bind_guard<Named<8>>(m, "_PreserveDispatchKeyGuard", pb::init([] { return Named<8>(KeySet(), KeySet()); }));
  bind_guard<Named<9>>(m, "_RestorePythonTLSSnapshot", pb::init([] { return Named<9>(KeySet(), KeySet()); }));
  bind_guard<Named<10>>(m, "_SetExcludeDispatchKeyGuard", pb::init([](const pb::object& key, bool on) {
                          return on ? Named<10>(KeySet(), set_of(key_of(key)))
                                    : Named<10>(KeySet(), KeySet(thread_state.excluded).remove(key_of(key)), true);
                        }));
  bind_guard<Named<11>>(m, "ExcludeDispatchKeyGuard", pb::init([](KeySet keys) { return Named<11>(KeySet(), keys); }));
  bind_guard<ForceGuard>(
      m, "_ForceDispatchKeyGuard",
      pb::init([](KeySet include, KeySet exclude) { return ForceGuard(include, exclude); }),
      pb::init([] { return ForceGuard(KeySet(thread_state.included), KeySet(thread_state.excluded)); }));
}

}  // namespace

bool bind_dispatch_keys(PyObject* module) {
  try {
    auto m = pb::reinterpret_borrow<pb::module_>(module);
    for (const char* name :
         {"DispatchKeySet", "_ExcludeDispatchKeyGuard", "_IncludeDispatchKeyGuard", "_AutoDispatchBelowAutograd",
          "_AutoDispatchBelowADInplaceOrView", "_DisableTorchDispatch", "_DisablePythonDispatcher",
          "_EnablePythonDispatcher", "_EnablePreDispatch", "_PreserveDispatchKeyGuard", "_RestorePythonTLSSnapshot",
          "_SetExcludeDispatchKeyGuard", "ExcludeDispatchKeyGuard", "_ForceDispatchKeyGuard"})
      if (pb::hasattr(m, name)) pb::delattr(m, name);  // the table's inert class of that name
    pb::register_local_exception_translator([](std::exception_ptr p) {
      try {
        if (p) std::rethrow_exception(p);
      } catch (const Error&) {
        set_error_from_current_exception();
      } catch (const PythonError&) {
        return;
      }
    });
    bind_keyset(m);
    bind_key_functions(m);
    bind_thread_state(m);
    return true;
  } catch (...) {
    set_error_from_current_exception();
    return false;
  }
}

}  // namespace tn::py
