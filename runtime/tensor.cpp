#include "runtime/tensor.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "runtime/copy.h"
#include "runtime/func/layers.h"
#include "runtime/memory.h"
#include "runtime/shape.h"
#include "runtime/warn.h"

namespace tn {

constinit TensorHook tensor_pyobj_hook = nullptr;

// ---- Shape -------------------------------------------------------------------------------------------------------

void Shape::resize(int64_t dim) {
  if (dim == dim_) return;
  int64_t* heap = dim > kInlineDims ? new int64_t[2 * static_cast<size_t>(dim)] : nullptr;
  clear();
  heap_ = heap;
  dim_ = dim;
}

void Shape::assign(IntView sizes, IntView strides) {
  // The views may point into this shape, so they are read before anything is freed.
  const auto n = sizes.size();
  if (static_cast<int64_t>(n) == dim_) {
    std::memmove(mutable_sizes(), sizes.data(), n * sizeof(int64_t));
    std::memmove(mutable_strides(), strides.data(), n * sizeof(int64_t));
    return;
  }
  Shape fresh;
  fresh.resize(static_cast<int64_t>(n));
  std::copy_n(sizes.data(), n, fresh.mutable_sizes());
  std::copy_n(strides.data(), n, fresh.mutable_strides());
  std::swap(heap_, fresh.heap_);
  std::swap(dim_, fresh.dim_);
  if (!heap_) std::copy_n(fresh.inline_, 2 * kInlineDims, inline_);
}

// ---- TensorImpl ----------------------------------------------------------------------------------------------------

static_assert(sizeof(TensorImpl) <= memory::kSmallBytes[0], "a header fits its recycled block");

TensorImpl* TensorImpl::create() { return new (memory::take_small(memory::Small::Header)) TensorImpl(); }

TensorImpl::~TensorImpl() {
  if (__builtin_expect(autograd != nullptr, 0)) destroy_autograd_meta(autograd);
  if (__builtin_expect(wrapper != nullptr, 0)) func::destroy_wrapper(wrapper);
}

void TensorImpl::destroy(TensorImpl* t) noexcept {
  if (__builtin_expect(t->pyobj != nullptr && tensor_pyobj_hook != nullptr, 0)) tensor_pyobj_hook(*t);
  t->~TensorImpl();
  memory::give_small(t, memory::Small::Header);
}

namespace {

// Strides of dimensions without extent don't matter; the order gives the fastest dimension first.
template <size_t N>
bool dense_in_order(IntView sizes, IntView strides, const int (&order)[N]) {
  int64_t expected = 1;
  for (const int d : order) {
    if (sizes[d] == 1) continue;
    if (strides[d] != expected) return false;
    expected *= sizes[d];
  }
  return true;
}

bool row_major(IntView sizes, IntView strides) {
  int64_t expected = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] == 1) continue;
    if (strides[d] != expected) return false;
    expected *= sizes[d];
  }
  return true;
}

[[noreturn, gnu::cold]] void overflow(IntView sizes) {
  fail(ErrorKind::Runtime, "Storage size calculation overflowed with sizes=", sizes);
}

int64_t checked_product(IntView sizes) {
  int64_t n = 1;
  bool bad = false;
  for (const int64_t s : sizes) {
    if (__builtin_expect(s < 0, 0))
      fail(ErrorKind::Runtime, "Trying to create tensor with negative dimension ", s, ": ", sizes);
    bad |= __builtin_mul_overflow(n, s, &n);
  }
  // A zero anywhere makes the product zero, whatever the others overflowed to on the way.
  if (__builtin_expect(bad, 0)) {
    for (const int64_t s : sizes)
      if (s == 0) return 0;
    overflow(sizes);
  }
  return n;
}

}  // namespace

bool TensorImpl::is_contiguous(MemoryFormat format) const {
  switch (format) {
    case MemoryFormat::Contiguous: return contiguous_;
    case MemoryFormat::ChannelsLast: return dim() == 4 && dense_in_order(sizes(), strides(), {1, 3, 2, 0});
    case MemoryFormat::ChannelsLast3d: return dim() == 5 && dense_in_order(sizes(), strides(), {1, 4, 3, 2, 0});
    case MemoryFormat::Preserve: break;
  }
  fail(ErrorKind::Runtime, "preserve memory format is unsupported by the contiguous operator");
}

bool TensorImpl::is_non_overlapping_and_dense() const {
  if (contiguous_) return true;
  const auto n = static_cast<size_t>(dim());
  const IntView sz = sizes(), st = strides();
  // Takes the smallest stride left again and again; few dimensions, so no sorting.
  if (n > kMaxDims) return false;
  uint64_t left = 0;
  for (size_t d = 0; d < n; ++d)
    if (sz[d] != 1) left |= uint64_t{1} << d;
  for (int64_t expected = 1; left != 0;) {
    bool found = false;
    for (size_t d = 0; d < n; ++d) {
      if (!((left >> d) & 1) || st[d] != expected) continue;
      left &= ~(uint64_t{1} << d);
      expected *= sz[d];
      found = true;
      break;
    }
    if (!found) return false;
  }
  return true;
}

void TensorImpl::refresh() {
  numel_ = product(shape_.sizes());
  contiguous_ = numel_ == 0 || row_major(shape_.sizes(), shape_.strides());
}

void TensorImpl::set_sizes_contiguous(IntView sizes, MemoryFormat format) {
  const int64_t numel = checked_product(sizes);
  const auto n = sizes.size();
  if (static_cast<int64_t>(n) == shape_.dim()) {
    if (n > 0) std::memmove(shape_.mutable_sizes(), sizes.data(), n * sizeof(int64_t));
  } else if (n <= kInlineDims && shape_.dim() <= kInlineDims) {
    int64_t copy[kInlineDims];
    std::copy_n(sizes.data(), n, copy);
    shape_.resize(static_cast<int64_t>(n));
    std::copy_n(copy, n, shape_.mutable_sizes());
  } else {
    shape_.assign(sizes, sizes);
  }
  contiguous_strides(shape_.sizes(), shape_.mutable_strides(), format);
  numel_ = numel;
  contiguous_ = format == MemoryFormat::Contiguous || numel == 0 || row_major(shape_.sizes(), shape_.strides());
}

void TensorImpl::set_geometry(IntView sizes, IntView strides, int64_t offset) {
  TN_CHECK(sizes.size() == strides.size(), "dimensionality of sizes (", sizes.size(),
           ") must match dimensionality of strides (", strides.size(), ")");
  const int64_t numel = checked_product(sizes);
  shape_.assign(sizes, strides);
  offset_ = offset;
  numel_ = numel;
  contiguous_ = numel == 0 || row_major(shape_.sizes(), shape_.strides());
}

void TensorImpl::share_version(TensorImpl& other) {
  if (!other.shared_version_) other.shared_version_ = make_ref<VersionCounter>(other.version_);
  shared_version_ = other.shared_version_;
}

// ---- Tensor
// ----------------------------------------------------------------------------------------------------------

int64_t wrap_dim(int64_t d, int64_t ndim, bool wrap_scalar) {
  if (__builtin_expect(ndim == 0, 0)) {
    TN_CHECK_AS(Index, wrap_scalar, "Dimension specified as ", d, " but tensor has no dimensions");
    ndim = 1;
  }
  TN_CHECK_AS(Index, d >= -ndim && d < ndim, "Dimension out of range (expected to be in range of [", -ndim, ", ",
              ndim - 1, "], but got ", d, ")");
  return d < 0 ? d + ndim : d;
}

int64_t Tensor::size(int64_t d) const { return impl_->size(wrap_dim(d, dim(), false)); }
int64_t Tensor::stride(int64_t d) const { return impl_->stride(wrap_dim(d, dim(), false)); }

void contiguous_strides(IntView sizes, int64_t* strides, MemoryFormat format) {
  const auto fill_in_order = [&](const auto& order) {
    int64_t next = 1;
    for (const int d : order) {
      strides[d] = next;
      next *= std::max<int64_t>(sizes[d], 1);
    }
  };
  switch (format) {
    case MemoryFormat::Contiguous: {
      // Products that overflow belong to shapes without elements; they wrap, as upstream's.
      uint64_t next = 1;
      for (size_t d = sizes.size(); d-- > 0;) {
        strides[d] = static_cast<int64_t>(next);
        next *= static_cast<uint64_t>(std::max<int64_t>(sizes[d], 1));
      }
      return;
    }
    case MemoryFormat::ChannelsLast: {
      TN_CHECK(sizes.size() == 4, "required rank 4 tensor to use channels_last format");
      constexpr int kOrder[] = {1, 3, 2, 0};
      return fill_in_order(kOrder);
    }
    case MemoryFormat::ChannelsLast3d: {
      TN_CHECK(sizes.size() == 5, "required rank 5 tensor to use channels_last_3d format");
      constexpr int kOrder[] = {1, 4, 3, 2, 0};
      return fill_in_order(kOrder);
    }
    case MemoryFormat::Preserve: break;
  }
  fail(ErrorKind::Runtime, "unsupported memory format Preserve");
}

int64_t product(IntView sizes) {
  int64_t n = 1;
  for (const int64_t s : sizes) n *= s;
  return n;
}

size_t storage_bytes(IntView sizes, IntView strides, int64_t offset, size_t item_size) {
  int64_t last = 0;  // the largest index from the offset on
  bool bad = false;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return 0;
    int64_t reach = 0;
    bad |= strides[d] < 0;  // upstream counts in unsigned numbers
    bad |= __builtin_mul_overflow(sizes[d] - 1, strides[d], &reach);
    bad |= __builtin_add_overflow(last, reach, &last);
  }
  int64_t bytes = 0;
  bad |= __builtin_add_overflow(last, offset, &last);
  bad |= __builtin_add_overflow(last, 1, &last);
  bad |= __builtin_mul_overflow(last, static_cast<int64_t>(item_size), &bytes);
  if (__builtin_expect(bad || bytes < 0, 0))
    fail(ErrorKind::Runtime, "Storage size calculation overflowed with sizes=", sizes, " and strides=", strides);
  return static_cast<size_t>(bytes);
}

// ---- new tensors -------------------------------------------------------------------------------------------------

namespace {

constexpr KeySet kCpuKeys = KeySet(DispatchKey::CPU) | KeySet(DispatchKey::AutogradCPU) |
                            KeySet(DispatchKey::ADInplaceOrView) | KeySet(DispatchKey::AutocastCPU);
constexpr KeySet kMetaKeys =
    KeySet(DispatchKey::Meta) | KeySet(DispatchKey::AutogradMeta) | KeySet(DispatchKey::ADInplaceOrView);

Tensor new_header(ScalarType dtype, Device device) {
  Tensor t = Tensor::adopt(TensorImpl::create());
  t->set_dtype(dtype);
  t->set_device(device);
  t->set_keys(keys_of_new(device));
  t->set_inference(thread_state.inference_mode);
  return t;
}

}  // namespace

KeySet keys_of_new(Device device) {
  TN_CHECK(device.is_cpu() || device.is_meta(), "keys_of_new: expected device cpu or meta, got ", device.str());
  const KeySet all = device.is_cpu() ? kCpuKeys : kMetaKeys;
  if (!thread_state.inference_mode) return all;
  return all.remove(DispatchKey::AutogradCPU).remove(DispatchKey::ADInplaceOrView);
}

Tensor empty(IntView sizes, ScalarType dtype, Device device, MemoryFormat format) {
  if (device.is_meta() || device.is_cpu()) device.index = -1;
  Tensor t = new_header(dtype, device);
  t->set_sizes_contiguous(sizes, format);
  int64_t bytes = 0;
  if (__builtin_expect(__builtin_mul_overflow(t.numel(), static_cast<int64_t>(item_size(dtype)), &bytes), 0))
    overflow(sizes);
  t->set_storage(Storage::allocate(static_cast<size_t>(bytes), device));
  return t;
}

Tensor empty_strided(IntView sizes, IntView strides, ScalarType dtype, Device device) {
  if (device.is_meta() || device.is_cpu()) device.index = -1;
  Tensor t = new_header(dtype, device);
  t->set_geometry(sizes, strides, 0);
  t->set_storage(Storage::allocate(storage_bytes(sizes, strides, 0, item_size(dtype)), device));
  return t;
}

Tensor alias_with_geometry(const Tensor& self, IntView sizes, IntView strides, int64_t offset) {
  constexpr uint64_t kDropped =
      KeySet::kOurs | (KeySet(DispatchKey::Python).raw() | KeySet(DispatchKey::PythonTLSSnapshot).raw());
  Tensor t = Tensor::adopt(TensorImpl::create());
  t->set_dtype(self.dtype());
  t->set_device(self.device());
  t->set_layout(self.layout());
  t->set_keys(KeySet(self->keys().raw() & ~kDropped));
  t->set_inference(self->is_inference());
  t->set_storage(self.storage());
  t->set_geometry(sizes, strides, offset);
  if (!self->is_inference()) t->share_version(*self.impl());
  if (self->wrapper) t->wrapper = func::copy_wrapper(*self->wrapper);
  return t;
}

Tensor scalar_tensor(const Scalar& s, ScalarType dtype, Device device) {
  Tensor t = empty({}, dtype, device);
  if (!t.is_meta()) fill(t, s);
  return t;
}

Tensor wrapped_scalar(const Scalar& s, Device device) {
  Tensor t = empty({}, s.type(), device);
  t->set_wrapped_number(true);
  if (t.is_meta()) return t;
  switch (s.kind()) {
    case Scalar::Kind::Double: *t.data<double>() = s.to_double(); break;
    case Scalar::Kind::Int: *t.data<int64_t>() = s.to_int64(); break;
    case Scalar::Kind::UInt: *t.data<uint64_t>() = s.to_uint64(); break;
    case Scalar::Kind::Bool: *t.data<bool>() = s.to_bool(); break;
    case Scalar::Kind::Complex: *t.data<std::complex<double>>() = s.to_complex(); break;
  }
  return t;
}

// ---- resizing ----------------------------------------------------------------------------------------------------

void resize_impl(TensorImpl& self, IntView sizes, MemoryFormat format) {
  const DimVector wanted(sizes);  // sizes may be self's own
  const auto item = item_size(self.dtype());
  int64_t strides[kMaxDims];
  TN_CHECK(wanted.size() <= kMaxDims, "resize_: expected at most ", kMaxDims, " dimensions, got ", wanted.size());
  checked_product(wanted);
  contiguous_strides(wanted, strides, format);
  const size_t bytes = storage_bytes(wanted, {strides, wanted.size()}, self.storage_offset(), item);
  if (bytes > self.storage()->nbytes()) self.storage()->resize(bytes);
  self.set_sizes_contiguous(wanted, format);
}

bool resize_output(const Tensor& out, IntView sizes, MemoryFormat format) {
  if (out.sizes() == sizes) return false;
  if (out.numel() != 0)
    warn(str("An output with one or more elements was resized since it had shape ", out.sizes(),
             ", which does not match the required output shape ", sizes,
             ". This behavior is deprecated, and in a future PyTorch release outputs will not be resized unless they "
             "have zero "
             "elements. You can explicitly reuse an out tensor t by resizing it, inplace, to zero elements with "
             "t.resize_(0)."));
  resize_impl(*out.impl(), sizes, format);
  return true;
}

}  // namespace tn
