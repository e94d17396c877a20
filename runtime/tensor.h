// The tensor: a counted header over a storage. Views share the storage and the version counter.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/array_ref.h"
#include "runtime/device.h"
#include "runtime/dtype.h"
#include "runtime/error.h"
#include "runtime/intrusive.h"
#include "runtime/keyset.h"
#include "runtime/scalar.h"
#include "runtime/storage.h"

namespace tn {

inline constexpr int kInlineDims = 5;
inline constexpr int kMaxDims = 64;

// Sizes and strides, inline up to five dimensions, in one heap block beyond.
class Shape {
 public:
  Shape() = default;
  Shape(const Shape& o) { assign(o.sizes(), o.strides()); }
  Shape& operator=(const Shape& o) {
    if (this != &o) assign(o.sizes(), o.strides());
    return *this;
  }
  ~Shape() { clear(); }

  int64_t dim() const { return dim_; }
  IntView sizes() const { return {data(), static_cast<size_t>(dim_)}; }
  IntView strides() const { return {data() + capacity(), static_cast<size_t>(dim_)}; }
  int64_t* mutable_sizes() { return data(); }
  int64_t* mutable_strides() { return data() + capacity(); }
  void resize(int64_t dim);  // contents unspecified
  void assign(IntView sizes, IntView strides);

 private:
  int64_t capacity() const { return heap_ ? dim_ : kInlineDims; }
  const int64_t* data() const { return heap_ ? heap_ : inline_; }
  int64_t* data() { return heap_ ? heap_ : inline_; }
  void clear() {
    delete[] heap_;
    heap_ = nullptr;
  }

  int64_t inline_[2 * kInlineDims];
  int64_t* heap_ = nullptr;
  int64_t dim_ = 0;
};

// What only tensors in a graph have. Defined by the autograd engine (runtime/autograd_meta.h).
class AutogradMeta;

// A version shared by a base and its views. A tensor alone counts in its own header (TensorImpl::version_).
class VersionCounter : public RefCounted {
 public:
  explicit VersionCounter(uint32_t start) : value(start) {}
  std::atomic<uint32_t> value;
  std::atomic_flag busy;          // guards the list
  AutogradMeta* views = nullptr;  // living views, which learn when their base gets a gradient or a tangent
  static void destroy(VersionCounter* v) noexcept { delete v; }
};

void destroy_autograd_meta(AutogradMeta* meta) noexcept;

// What a tensor of a function transform stands for. Defined by the transforms (runtime/func/layers.h).
namespace func {
struct Wrapper;
}

class TensorImpl;
// Set by the bindings: called for a dying tensor whose pyobj is set.
using TensorHook = void (*)(TensorImpl& tensor) noexcept;
extern constinit TensorHook tensor_pyobj_hook;

class TensorImpl : public RefCounted {
 public:
  TensorImpl() = default;
  ~TensorImpl();
  static void destroy(TensorImpl* t) noexcept;
  static TensorImpl* create();  // recycles headers of this thread

  int64_t dim() const { return shape_.dim(); }
  int64_t numel() const { return numel_; }
  IntView sizes() const { return shape_.sizes(); }
  IntView strides() const { return shape_.strides(); }
  int64_t size(int64_t d) const { return shape_.sizes()[static_cast<size_t>(d)]; }
  int64_t stride(int64_t d) const { return shape_.strides()[static_cast<size_t>(d)]; }
  int64_t storage_offset() const { return offset_; }
  ScalarType dtype() const { return dtype_; }
  Device device() const { return device_; }
  Layout layout() const { return layout_; }
  KeySet keys() const { return keys_; }
  const Storage& storage() const { return storage_; }
  bool is_contiguous() const { return contiguous_; }
  bool is_contiguous(MemoryFormat format) const;
  bool is_non_overlapping_and_dense() const;
  bool is_wrapped_number() const { return wrapped_number_; }
  bool is_conj() const { return keys_.has(DispatchKey::Conjugate); }
  bool is_neg() const { return keys_.has(DispatchKey::Negative); }
  bool is_inference() const { return inference_; }
  bool requires_grad() const { return (keys_.raw() & KeySet::kNeedsGrad) != 0; }

  // First element; RuntimeError with the storage's reason where there is no memory (wrapper subclasses).
  void* data() const {
    if (__builtin_expect(storage_->no_data_reason != nullptr, 0)) fail(ErrorKind::Runtime, storage_->no_data_reason);
    return raw_data();
  }
  // First element without a check; null for meta and empty storages.
  void* raw_data() const {
    char* base = static_cast<char*>(storage_->data());
    return base ? base + offset_ * static_cast<int64_t>(item_size(dtype_)) : nullptr;
  }

  // Geometry. Each recomputes numel and the contiguity flag. They don't touch the storage.
  // Negative sizes, and more elements than fit int64, are a RuntimeError.
  void set_sizes_contiguous(IntView sizes, MemoryFormat format = MemoryFormat::Contiguous);
  void set_geometry(IntView sizes, IntView strides, int64_t offset);
  void set_storage(Storage s) { storage_ = std::move(s); }
  void set_storage_offset(int64_t offset) { offset_ = offset; }
  void set_dtype(ScalarType t) { dtype_ = t; }
  void set_device(Device d) { device_ = d; }
  void set_layout(Layout l) { layout_ = l; }
  void set_keys(KeySet k) { keys_ = k; }
  void set_wrapped_number(bool on) { wrapped_number_ = on; }
  void set_inference(bool on) { inference_ = on; }
  void set_conj(bool on) { set_key(DispatchKey::Conjugate, on); }
  void set_neg(bool on) { set_key(DispatchKey::Negative, on); }
  void set_requires_grad_bit(bool on) {
    keys_ = KeySet(on ? keys_.raw() | KeySet::kNeedsGrad : keys_.raw() & ~KeySet::kNeedsGrad);
  }
  bool is_dual() const { return (keys_.raw() & KeySet::kDual) != 0; }
  void set_dual_bit(bool on) { keys_ = KeySet(on ? keys_.raw() | KeySet::kDual : keys_.raw() & ~KeySet::kDual); }
  void set_key(DispatchKey key, bool on) { keys_ = on ? keys_ | key : keys_.remove(key); }

  uint32_t version() const {
    return shared_version_ ? shared_version_->value.load(std::memory_order_relaxed) : version_;
  }
  void bump_version() {
    if (shared_version_) shared_version_->value.fetch_add(1, std::memory_order_relaxed);
    else ++version_;
  }
  void set_version(uint32_t v) {
    if (shared_version_) shared_version_->value.store(v, std::memory_order_relaxed);
    else version_ = v;
  }
  // Makes this tensor count together with another: what views and detach do.
  void share_version(TensorImpl& other);
  VersionCounter* shared_version() const { return shared_version_.get(); }  // null for a tensor that counts alone
  // Starts an own count from zero: what .data does.
  void own_version() {
    shared_version_ = nullptr;
    version_ = 0;
  }

  AutogradMeta* autograd = nullptr;
  func::Wrapper* wrapper = nullptr;  // owned
  // Python's object of this tensor, and whether this header keeps it alive (bindings/tensor.h).
  void* pyobj = nullptr;
  bool owns_pyobj = false;
  // Set for tensors whose Python class overrides __torch_dispatch__, or sizes, strides, device.
  bool python_dispatch = false;
  uint8_t python_custom = 0;

 private:
  void refresh();

  KeySet keys_;
  Storage storage_;
  int64_t offset_ = 0;
  int64_t numel_ = 1;
  Shape shape_;
  Ref<VersionCounter> shared_version_;
  uint32_t version_ = 0;
  ScalarType dtype_ = ScalarType::Float;
  Device device_;
  Layout layout_ = Layout::Strided;
  bool contiguous_ = true;
  bool wrapped_number_ = false;
  bool inference_ = false;
};

// Options of a new tensor, with upstream's name and builder style.
class TensorOptions {
 public:
  TensorOptions() = default;
  TensorOptions(ScalarType t) : dtype_(t) {}  // NOLINT
  TensorOptions(Device d) : device_(d) {}     // NOLINT
  TensorOptions dtype(std::optional<ScalarType> t) const {
    auto o = *this;
    o.dtype_ = t;
    return o;
  }
  TensorOptions device(std::optional<Device> d) const {
    auto o = *this;
    o.device_ = d;
    return o;
  }
  TensorOptions layout(std::optional<Layout> l) const {
    auto o = *this;
    o.layout_ = l;
    return o;
  }
  TensorOptions pinned_memory(std::optional<bool> p) const {
    auto o = *this;
    o.pinned_ = p;
    return o;
  }
  TensorOptions requires_grad(std::optional<bool> r) const {
    auto o = *this;
    o.requires_grad_ = r;
    return o;
  }
  std::optional<ScalarType> dtype_opt() const { return dtype_; }
  std::optional<Device> device_opt() const { return device_; }
  std::optional<Layout> layout_opt() const { return layout_; }
  std::optional<bool> pinned_memory_opt() const { return pinned_; }
  ScalarType dtype() const { return dtype_.value_or(default_dtype()); }
  Device device() const { return device_.value_or(Device()); }

 private:
  std::optional<ScalarType> dtype_;
  std::optional<Device> device_;
  std::optional<Layout> layout_;
  std::optional<bool> pinned_;
  std::optional<bool> requires_grad_;
};

// One pointer; may be undefined (null), as upstream's.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(Ref<TensorImpl> impl) : impl_(std::move(impl)) {}
  static Tensor adopt(TensorImpl* owned) { return Tensor(Ref<TensorImpl>::adopt(owned)); }
  static Tensor share(TensorImpl* borrowed) { return Tensor(Ref<TensorImpl>::share(borrowed)); }

  bool defined() const { return static_cast<bool>(impl_); }
  TensorImpl* impl() const { return impl_.get(); }
  TensorImpl* operator->() const { return impl_.get(); }
  TensorImpl* release() { return impl_.release(); }
  bool is_same(const Tensor& o) const { return impl_ == o.impl_; }
  void reset() { impl_ = nullptr; }

  int64_t dim() const { return impl_->dim(); }
  int64_t numel() const { return impl_->numel(); }
  IntView sizes() const { return impl_->sizes(); }
  IntView strides() const { return impl_->strides(); }
  int64_t size(int64_t d) const;  // negative d counts from the end; IndexError out of range
  int64_t stride(int64_t d) const;
  int64_t storage_offset() const { return impl_->storage_offset(); }
  ScalarType scalar_type() const { return impl_->dtype(); }
  ScalarType dtype() const { return impl_->dtype(); }
  Device device() const { return impl_->device(); }
  Layout layout() const { return impl_->layout(); }
  size_t itemsize() const { return item_size(impl_->dtype()); }
  bool is_contiguous(MemoryFormat f = MemoryFormat::Contiguous) const { return impl_->is_contiguous(f); }
  bool is_cpu() const { return impl_->device().is_cpu(); }
  bool is_meta() const { return impl_->device().is_meta(); }
  bool is_complex() const { return tn::is_complex(impl_->dtype()); }
  bool is_floating_point() const { return is_floating(impl_->dtype()); }
  bool requires_grad() const { return impl_->requires_grad(); }
  TensorOptions options() const { return TensorOptions().dtype(dtype()).device(device()).layout(layout()); }
  const Storage& storage() const { return impl_->storage(); }

  template <class T>
  T* data() const {
    return static_cast<T*>(impl_->data());
  }
  void* data_ptr() const { return impl_->data(); }

 private:
  Ref<TensorImpl> impl_;
};
static_assert(sizeof(Tensor) == sizeof(void*), "arguments borrow a Tensor through its pointer");

using TensorList = ArrayRef<Tensor>;

// An optional tensor argument: borrows, one pointer wide. Undefined and absent are the same, as in upstream's kernels.
class OptionalTensor {
 public:
  OptionalTensor() = default;
  OptionalTensor(std::nullopt_t) {}                                                   // NOLINT
  OptionalTensor(const Tensor& t) : impl_(t.impl()) {}                                // NOLINT
  OptionalTensor(const std::optional<Tensor>& t) : impl_(t ? t->impl() : nullptr) {}  // NOLINT
  explicit OptionalTensor(TensorImpl* borrowed) : impl_(borrowed) {}
  bool has_value() const { return impl_ != nullptr; }
  explicit operator bool() const { return has_value(); }
  const Tensor& operator*() const { return *reinterpret_cast<const Tensor*>(&impl_); }
  const Tensor& value() const { return **this; }
  const Tensor* operator->() const { return reinterpret_cast<const Tensor*>(&impl_); }

 private:
  TensorImpl* impl_ = nullptr;
};

// ---- making tensors below the door: for kernels and shape functions --------------------------------------------

// Uninitialised, contiguous in the given format (Preserve is not allowed), on CPU or Meta.
Tensor empty(IntView sizes, ScalarType dtype, Device device = {}, MemoryFormat format = MemoryFormat::Contiguous);
Tensor empty_strided(IntView sizes, IntView strides, ScalarType dtype, Device device = {});
// A view of self's storage with this geometry: shares version, keeps dtype and conj and neg bits. No view tracking.
Tensor alias_with_geometry(const Tensor& self, IntView sizes, IntView strides, int64_t offset);
// 0-dim tensor of the scalar's own dtype, flagged so that promotion treats it as a Python number.
Tensor wrapped_scalar(const Scalar& s, Device device = {});
Tensor scalar_tensor(const Scalar& s, ScalarType dtype, Device device = {});

// The keys of a plain tensor on a device (Dense, backend, autograd, in-place-or-view).
// In inference mode without the autograd ones.
KeySet keys_of_new(Device device);

// Strides of a contiguous tensor in the format.
void contiguous_strides(IntView sizes, int64_t* strides, MemoryFormat format = MemoryFormat::Contiguous);
int64_t product(IntView sizes);
// The bytes that a geometry spans from its storage's start.
size_t storage_bytes(IntView sizes, IntView strides, int64_t offset, size_t item_size);

// Resizes an `out=` tensor as upstream does: unchanged if the shape fits; else resized, with upstream's warning if it
// held elements. Returns whether it was resized.
bool resize_output(const Tensor& out, IntView sizes, MemoryFormat format = MemoryFormat::Contiguous);
void resize_impl(TensorImpl& self, IntView sizes, MemoryFormat format = MemoryFormat::Contiguous);

// Wraps a dimension; IndexError "Dimension out of range (expected to be in range of [-2, 1], but got 5)".
int64_t wrap_dim(int64_t d, int64_t ndim, bool wrap_scalar = true);

}  // namespace tn
