#include "runtime/func/layers.h"

#include "runtime/error.h"

namespace tn::func {

namespace {

constinit thread_local std::vector<Layer>* thread_layers =
    nullptr;  // a pointer: threads without transforms tear nothing down

constexpr uint64_t kStanding = keys::kFront.raw() | keys::kBack.raw();

void include_keys() {
  uint64_t& included = thread_state.included;
  included = layers().empty() ? included & ~kStanding : included | kStanding;
}

uint64_t with_modes(uint64_t excluded) { return (excluded & ~KeySet::kOurs) | (thread_state.excluded & KeySet::kOurs); }

// Keys that a wrapper has because its value has them.
KeySet propagated(const Tensor& value) {
  const KeySet dropped = KeySet(DispatchKey::Python) | KeySet(DispatchKey::PythonTLSSnapshot) | keys::kGradWrapper |
                         keys::kBatched | KeySet(DispatchKey::Functionalize);
  return KeySet(value->keys().raw() & ~(dropped.raw() | keys::kAutograd.raw() | KeySet::kOurs));
}

Tensor wrap(const Tensor& value, Wrapper w, KeySet added) {
  Tensor t = Tensor::adopt(TensorImpl::create());
  t->set_dtype(value.dtype());
  t->set_device(value.device());
  t->set_layout(value.layout());
  t->set_keys(propagated(value) | added);
  t->set_storage(value.storage());
  t->set_wrapped_number(value->is_wrapped_number());
  t->wrapper = new Wrapper(std::move(w));
  refresh(t);
  return t;
}

}  // namespace

constinit VmapCall vmap_call = nullptr;

void destroy_wrapper(Wrapper* w) noexcept { delete w; }
Wrapper* copy_wrapper(const Wrapper& w) { return new Wrapper(w); }

std::vector<Layer>& layers() {
  if (!thread_layers) thread_layers = new std::vector<Layer>();
  return *thread_layers;
}

int64_t begin(Transform transform, int64_t batch_size, Randomness randomness) {
  Layer layer;
  layer.transform = transform;
  layer.level = static_cast<int64_t>(layers().size()) + 1;
  layer.batch_size = batch_size;
  layer.randomness = randomness;
  layer.previous_grad_mode = grad_mode();
  layer.previous_fw_grad_mode = thread_state.fw_grad_mode;
  layer.life = Ref<Life>::adopt(new Life());
  layer.included = thread_state.included;
  layer.excluded = thread_state.excluded;
  const int64_t level = layer.level;
  put_on(std::move(layer));
  return level;
}

Layer end(Transform expected) {
  TN_CHECK(!layers().empty() && layers().back().transform == expected,
           "expected to leave the innermost function transform, got another one");
  Layer layer = take_off();
  layer.life->alive = false;
  return layer;
}

Layer take_off() {
  TN_CHECK(!layers().empty(), "expected a running function transform, got none");
  Layer layer = std::move(layers().back());
  layers().pop_back();
  include_keys();
  return layer;
}

void put_on(Layer layer) {
  layers().push_back(std::move(layer));
  include_keys();
}

Tensor wrap_for_grad(const Tensor& value, const Layer& layer) {
  return wrap(value, {value, layer.level, -1, layer.life}, keys_of_new(value.device()) | keys::kGradWrapper);
}

Tensor wrap_batched(const Tensor& value, int64_t batch_dim, int64_t level) {
  Ref<Life> life;
  for (const Layer& l : layers())
    if (l.level == level) life = l.life;
  if (!life) life = Ref<Life>::adopt(new Life());
  return wrap(value, {value, level, batch_dim, std::move(life)}, keys::kBatched);
}

Tensor unwrap_dead(Tensor t) {
  while (is_dead(t) && !t->wrapper->batched()) t = Tensor(t->wrapper->value);
  return t;
}

bool holds_batch(const Tensor& t) {
  for (const Wrapper* w = t.defined() ? t->wrapper : nullptr; w; w = w->value->wrapper)
    if (w->batched()) return true;
  return false;
}

void refresh(const Tensor& t) {
  const Wrapper& w = *t->wrapper;
  const Tensor& v = w.value;
  if (!w.batched()) {
    t->set_storage(v.storage());
    t->set_geometry(v.sizes(), v.strides(), v.storage_offset());
    return;
  }
  std::vector<int64_t> sizes, strides;
  for (int64_t d = 0; d < v.dim(); ++d) {
    if (d == w.batch_dim) continue;
    sizes.push_back(v.sizes()[static_cast<size_t>(d)]);
    strides.push_back(v.strides()[static_cast<size_t>(d)]);
  }
  t->set_storage(v.storage());
  t->set_geometry(sizes, strides, v.storage_offset());
}

Tensor lift(Tensor t) {
  if (!active() || !t.defined()) return t;
  for (const Layer& layer : layers())
    if (layer.transform == Transform::Grad || layer.transform == Transform::Jvp) t = wrap_for_grad(t, layer);
  return t;
}

BelowTop::BelowTop()
    : included_(thread_state.included),
      excluded_(thread_state.excluded),
      grad_mode_(grad_mode()),
      fw_grad_mode_(thread_state.fw_grad_mode) {
  layer_ = std::move(layers().back());
  layers().pop_back();
  thread_state.included = layer_.included;
  thread_state.excluded = with_modes(layer_.excluded);
  include_keys();
  // A transform doesn't depend on no_grad around it; what it sends on does.
  if (layer_.transform == Transform::Grad && !layer_.previous_grad_mode) set_grad_mode(false);
  if (layer_.transform == Transform::Jvp && !layer_.previous_fw_grad_mode) set_fw_grad_mode(false);
}

BelowTop::~BelowTop() {
  set_grad_mode(grad_mode_);
  set_fw_grad_mode(fw_grad_mode_);
  thread_state.included = included_;
  thread_state.excluded = with_modes(excluded_);
  layers().push_back(std::move(layer_));
}

}  // namespace tn::func
