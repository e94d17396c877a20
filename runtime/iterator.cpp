#include "runtime/iterator.h"

#include <cstring>
#include <numeric>

#include "runtime/copy.h"
#include "runtime/overlap.h"
#include "runtime/promote.h"

namespace tn {

void TensorIterator::add_output(const Tensor& t) {
  TN_CHECK(num_operands_ == num_outputs_ && num_operands_ < kMaxOperands,
           "TensorIterator: expected outputs before inputs, at most ", kMaxOperands, " operands");
  tensors_[at(num_operands_++)] = t;
  ++num_outputs_;
}

void TensorIterator::add_input(const Tensor& t) {
  TN_CHECK(t.defined() && num_operands_ < kMaxOperands, "TensorIterator: expected at most ", kMaxOperands,
           " defined operands");
  tensors_[at(num_operands_++)] = t;
}

void TensorIterator::build(const Options& options) {
  if (options.check_overlap) {
    for (int i = 0; i < num_outputs_; ++i) {
      const Tensor& out = tensors_[at(i)];
      if (!out.defined()) continue;
      assert_no_internal_overlap(out);
      for (int j = num_outputs_; j < num_operands_; ++j)
        if (!tensors_[at(j)].is_same(out)) assert_no_partial_overlap(out, tensors_[at(j)]);
    }
  }
  infer_shape(options);
  check_devices();
  infer_types(options);
  convert_inputs(options);
  if (!set_up_fast()) set_up_strided();
  if (meta_) return;
  for (int k = 0; k < num_operands_; ++k)
    data_[at(k)] = (inlined_ >> k) & 1 ? numbers_.data() + 16 * k : static_cast<char*>(operand(k).data_ptr());
}

void TensorIterator::check_devices() {
  Device common;
  for (int k = 0; k < num_operands_; ++k)
    if (tensors_[at(k)].defined() && !tensors_[at(k)].is_cpu()) {
      common = tensors_[at(k)].device();
      meta_ = common.is_meta();
      break;
    }
  if (common.is_cpu()) return;
  for (int k = 0; k < num_operands_; ++k) {
    const Tensor& t = tensors_[at(k)];
    if (!t.defined() || t.device() == common) continue;
    const bool number = k >= num_outputs_ && t.dim() == 0 && t.is_cpu();
    TN_CHECK(number, "Expected all tensors to be on the same device, but found at least two devices, ", common.str(),
             " and ", t.device().str(), "!");
  }
}

void TensorIterator::infer_shape(const Options& options) {
  bool first = true;
  for (int k = options.resize_outputs ? num_outputs_ : 0; k < num_operands_; ++k) {
    const Tensor& t = tensors_[at(k)];
    if (!t.defined()) continue;
    if (first) {
      sizes_ = t.sizes();
      first = false;
    } else if (t.sizes() != IntView(sizes_)) {
      same_shape_ = false;
      sizes_ = infer_size(sizes_, t.sizes());
    }
  }
  for (int i = 0; i < num_outputs_; ++i) {
    const Tensor& out = tensors_[at(i)];
    if (!out.defined() || out.sizes() == IntView(sizes_)) continue;
    bool is_read = options.inplace;
    for (int k = num_outputs_; k < num_operands_; ++k) is_read |= tensors_[at(k)].is_same(out);
    TN_CHECK(options.resize_outputs && !is_read, "output with shape ", out.sizes(),
             " doesn't match the broadcast shape ", IntView(sizes_));
    resize_[at(i)] = true;
  }
  numel_ = product(sizes_);
}

void TensorIterator::infer_types(const Options& options) {
  const Tensor* first = num_operands_ > num_outputs_ ? &tensors_[at(num_outputs_)] : nullptr;
  if (first) {
    common_dtype_ = first->dtype();
    bool mixed = false, all_zero_dim = true;
    for (int k = num_outputs_; k < num_operands_; ++k) {
      mixed |= tensors_[at(k)].dtype() != common_dtype_;
      all_zero_dim &= tensors_[at(k)].dim() == 0;
    }
    if (options.promotion != Promotion::None && (mixed || all_zero_dim)) {
      ResultType r;
      for (int k = num_outputs_; k < num_operands_; ++k) r.add(tensors_[at(k)]);
      common_dtype_ = r.get();
    }
    if (options.promotion == Promotion::ToFloat && is_integral(common_dtype_, true)) common_dtype_ = default_dtype();
  } else if (num_outputs_ > 0 && tensors_[0].defined()) {
    common_dtype_ = tensors_[0].dtype();
  }
  ScalarType result = options.out_dtype;
  if (result == ScalarType::Undefined)
    result = options.promotion == Promotion::ToBool     ? ScalarType::Bool
             : options.promotion == Promotion::RealPart ? real_of(common_dtype_)
                                                        : common_dtype_;
  for (int k = 0; k < num_operands_; ++k) {
    const Tensor& t = tensors_[at(k)];
    if (k >= num_outputs_) {
      dtypes_[at(k)] = options.promotion == Promotion::None ? t.dtype() : common_dtype_;
      continue;
    }
    dtypes_[at(k)] = result;
    if (!t.defined() || t.dtype() == result) continue;
    // Comparisons write into any dtype.
    TN_CHECK(options.promotion == Promotion::ToBool || can_cast(result, t.dtype()), "result type ",
             scalar_type_name(result), " can't be cast to the desired output type ", scalar_type_name(t.dtype()));
    temporary_[at(k)] = true;
  }
}

void TensorIterator::convert_inputs(const Options& options) {
  if (meta_ || !options.cast_inputs) return;
  for (int k = num_outputs_; k < num_operands_; ++k) {
    const Tensor& t = tensors_[at(k)];
    if (t.dtype() == dtypes_[at(k)]) continue;
    if (t.dim() == 0 && !t->is_conj() && !t->is_neg()) {
      convert_row(t.dtype(), static_cast<const char*>(t.data_ptr()), 0, dtypes_[at(k)], numbers_.data() + 16 * k, 0, 1);
      inlined_ |= 1u << k;
    } else {
      working_[at(k)] = cast(t, dtypes_[at(k)]);
    }
  }
}

// Allocates, resizes or replaces output i. No strides: row-major.
void TensorIterator::make_output(int i, IntView sizes, const DimVector* strides) {
  Tensor& given = tensors_[at(i)];
  const Device device = meta_ ? Device(DeviceType::Meta) : Device();
  const auto fresh = [&] {
    return strides ? empty_strided(sizes, *strides, dtypes_[at(i)], device) : empty(sizes, dtypes_[at(i)], device);
  };
  if (!given.defined()) {
    given = fresh();
    return;
  }
  if (resize_[at(i)]) {
    resize_output(given, sizes);
    if (strides) given->set_geometry(sizes, *strides, given.storage_offset());
  }
  if (temporary_[at(i)] && !meta_ && !working_[at(i)].defined()) working_[at(i)] = fresh();
}

// All operands of one shape, dense in one order: a single run, and results get the inputs' strides.
bool TensorIterator::set_up_fast() {
  if (!same_shape_) return false;
  bool contiguous = true, channels_last = true, dense = true, same_strides = true;
  const Tensor* last = nullptr;  // inputs decide before outputs do
  for (int k = num_operands_ - 1; k >= 0; --k) {
    if (!tensors_[at(k)].defined() || resize_[at(k)] || temporary_[at(k)] || ((inlined_ >> k) & 1)) continue;
    const Tensor& t = operand(k);
    contiguous &= t.is_contiguous();
    if (!contiguous) {
      channels_last &= t.is_contiguous(MemoryFormat::ChannelsLast);
      dense &= t->is_non_overlapping_and_dense();
      same_strides &= !last || last->strides() == t.strides();
    }
    if (!last) last = &t;
  }
  if (!contiguous) {
    // Operands that were contiguous before one that isn't still have to agree.
    for (int k = 0; k < num_operands_; ++k) {
      if (!tensors_[at(k)].defined() || resize_[at(k)] || temporary_[at(k)] || ((inlined_ >> k) & 1)) continue;
      channels_last &= operand(k).is_contiguous(MemoryFormat::ChannelsLast);
      same_strides &= operand(k).strides() == last->strides();
    }
    if (!channels_last && !(dense && same_strides)) return false;
    for (int i = 0; i < num_outputs_; ++i)  // temporaries are row-major in upstream's, so they take the general way
      if (temporary_[at(i)] && !resize_[at(i)]) return false;
  }
  DimVector strides;
  if (!contiguous) {
    if (channels_last) {
      strides.resize(sizes_.size());
      contiguous_strides(sizes_, strides.data(), MemoryFormat::ChannelsLast);
    } else {
      strides = last->strides();
    }
  }
  for (int i = 0; i < num_outputs_; ++i) make_output(i, sizes_, contiguous ? nullptr : &strides);
  dim_ = sizes_.empty() ? 0 : 1;
  shape_[0] = numel_;
  for (int k = 0; k < num_operands_; ++k)
    strides_[0][at(k)] = (inlined_ >> k) & 1 ? 0 : static_cast<int64_t>(item_size(dtypes_[at(k)]));
  return true;
}

// Upstream's order of dimensions: ascending strides, earlier operands first, broadcast dimensions undecided; equal
// strides put the larger size behind. strides_ still has the order of the shape here.
void TensorIterator::sort_dims(const int64_t* full_shape, int64_t* perm) const {
  const auto behind = [&](int64_t a, int64_t b) {  // 1: a belongs behind b; -1: before; 0: undecided
    for (int k = 0; k < num_operands_; ++k) {
      const bool unknown = k < num_outputs_ && (!operand(k).defined() || resize_[at(k)]);
      if (unknown) continue;
      const int64_t sa = strides_[at(static_cast<int>(a))][at(k)], sb = strides_[at(static_cast<int>(b))][at(k)];
      if (sa == 0 || sb == 0) continue;
      if (sa != sb) return sa < sb ? -1 : 1;
      if (full_shape[a] > full_shape[b]) return 1;
    }
    return 0;
  };
  for (int i = 1; i < dim_; ++i) {
    int moving = i;
    for (int j = i - 1; j >= 0; --j) {
      const int c = behind(perm[j], perm[moving]);
      if (c < 0) break;
      if (c == 0) continue;
      std::swap(perm[j], perm[moving]);
      moving = j;
    }
  }
}

void TensorIterator::set_up_strided() {
  const size_t n = sizes_.size();
  TN_CHECK(n <= kMaxDims, "only tensors with up to 64 dims are supported");
  dim_ = static_cast<int>(n);
  // A temporary output that keeps its shape is row-major and takes part like any other operand.
  for (int i = 0; i < num_outputs_; ++i)
    if (temporary_[at(i)] && !resize_[at(i)] && !meta_) make_output(i, sizes_, nullptr);
  for (int k = 0; k < num_operands_; ++k) {
    const bool known = !((inlined_ >> k) & 1) && operand(k).defined() && !resize_[at(k)];
    const auto item = static_cast<int64_t>(known ? operand(k).itemsize() : 0);
    const size_t missing = known ? n - static_cast<size_t>(operand(k).dim()) : n;
    for (size_t d = 0; d < n; ++d) {
      int64_t stride = 0;
      if (d >= missing) {
        const auto own = static_cast<int64_t>(d - missing);
        if (operand(k)->size(own) != 1 || sizes_[d] == 1) stride = operand(k)->stride(own) * item;
      }
      strides_[d][at(k)] = stride;
    }
  }
  int64_t perm[kMaxDims];
  for (int i = 0; i < dim_; ++i) perm[i] = dim_ - 1 - i;
  if (dim_ > 1) sort_dims(sizes_.data(), perm);

  bool inverted = true;
  for (int i = 0; i < dim_; ++i) inverted &= perm[i] == dim_ - 1 - i;
  DimVector result_strides(n);  // dense in the order found; a size of zero stays zero here, as upstream's does
  int64_t next = 1;
  for (int i = 0; i < dim_; ++i) {
    result_strides[at(static_cast<int>(perm[i]))] = next;
    next *= sizes_[at(static_cast<int>(perm[i]))];
  }
  for (int i = 0; i < num_outputs_; ++i) {
    if (tensors_[at(i)].defined() && !resize_[at(i)]) continue;
    make_output(i, sizes_, inverted ? nullptr : &result_strides);
    const Tensor& made = operand(i);
    for (size_t d = 0; d < n; ++d)
      strides_[d][at(i)] = made->stride(static_cast<int64_t>(d)) * static_cast<int64_t>(made.itemsize());
  }
  if (meta_) return;

  // Into fastest-first order; a copy of the rows, since the permutation may be any.
  std::array<int64_t, kMaxOperands> rows[kMaxDims];
  for (int i = 0; i < dim_; ++i) rows[i] = strides_[static_cast<size_t>(perm[i])];
  for (int i = 0; i < dim_; ++i) {
    strides_[at(i)] = rows[i];
    shape_[at(i)] = sizes_[static_cast<size_t>(perm[i])];
  }
  coalesce();
}

void TensorIterator::coalesce() {
  if (dim_ <= 1) return;
  int last = 0;
  for (int d = 1; d < dim_; ++d) {
    bool mergeable = shape_[at(last)] == 1 || shape_[at(d)] == 1;
    if (!mergeable) {
      mergeable = true;
      for (int k = 0; k < num_operands_; ++k)
        mergeable &= shape_[at(last)] * strides_[at(last)][at(k)] == strides_[at(d)][at(k)];
    }
    if (mergeable) {
      if (shape_[at(last)] == 1) strides_[at(last)] = strides_[at(d)];
      shape_[at(last)] *= shape_[at(d)];
    } else if (++last != d) {
      strides_[at(last)] = strides_[at(d)];
      shape_[at(last)] = shape_[at(d)];
    }
  }
  dim_ = last + 1;
}

void TensorIterator::finish() {
  for (int i = 0; i < num_outputs_; ++i)
    if (temporary_[at(i)] && !meta_) copy_into(tensors_[at(i)], working_[at(i)]);
}

}  // namespace tn
