// Packed sequences: the rows of each time step stand one after the other, and batches only shrink.
#include <algorithm>
#include <vector>

#include "generated/ops/copy.h"
#include "generated/ops/full.h"
#include "generated/ops/narrow.h"
#include "generated/ops/select.h"
#include "generated/ops/transpose.h"
#include "generated/ops/view.h"
#include "generated/ops/zeros.h"
#include "generated/slots/rnn.h"
#include "kernels/rnn/composites.h"
#include "runtime/copy.h"
#include "runtime/error.h"
#include "runtime/shape.h"

namespace tn {
namespace {

const int64_t* numbers(const Tensor& t, const char* name) {
  TN_CHECK(t.dim() == 1 && t.is_cpu() && t.dtype() == ScalarType::Long, "'", name,
           "' argument should be a 1D CPU int64 tensor, but got ", t.dim(), "D ", t.device().str(), " ",
           scalar_type_name(t.dtype()), " tensor");
  return t.data<int64_t>();
}

}  // namespace

std::tuple<Tensor, Tensor> native::_pack_padded_sequence(const Tensor& input, const Tensor& lengths_,
                                                         bool batch_first) {
  TN_CHECK(input.numel() > 0, "Cannot pack empty tensors.");
  const Tensor lengths = contiguous(lengths_);
  const int64_t* const each = numbers(lengths, "lengths");
  const int64_t batch = input.size(batch_first ? 0 : 1), steps = input.size(batch_first ? 1 : 0);
  TN_CHECK(lengths->size(0) == batch, "Expected `len(lengths)` to be equal to batch_size, but got ", lengths->size(0),
           " (batch_size=", batch, ")");
  TN_CHECK(each[batch - 1] > 0,
           "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0");
  for (int64_t i = 1; i < batch; ++i)
    TN_CHECK(each[i - 1] >= each[i],
             "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
             "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you "
             "do not need ONNX exportability.");
  TN_CHECK(each[0] <= steps, "_pack_padded_sequence: expected lengths of at most ", steps, ", got ", each[0]);
  int64_t total = 0;
  for (int64_t i = 0; i < batch; ++i) total += each[i];
  // Strides with time first; a step's rows are a view of it.
  DimVector sizes(input.sizes()), strides(input.strides());
  if (batch_first) {
    std::swap(sizes[0], sizes[1]);
    std::swap(strides[0], strides[1]);
  }
  DimVector row_sizes(sizes), row_strides(strides);
  row_sizes.erase(0);
  row_strides.erase(0);
  row_sizes[0] = total;
  const Tensor data = empty(row_sizes, input.dtype()), batch_sizes = empty({each[0]}, ScalarType::Long);
  int64_t offset = 0, alive = batch;
  for (int64_t t = 0; t < each[0]; ++t) {
    while (each[alive - 1] <= t) --alive;
    row_sizes[0] = alive;
    const Tensor from = alias_with_geometry(input, row_sizes, row_strides, input.storage_offset() + t * strides[0]);
    const Tensor to = alias_with_geometry(data, row_sizes, data.strides(), offset * data->stride(0));
    copy_into(to, from);
    offset += alive;
    batch_sizes.data<int64_t>()[t] = alive;
  }
  return {data, batch_sizes};
}

Tensor composite::pack_padded_sequence_backward(const Tensor& grad, IntView input_size, const Tensor& batch_sizes_,
                                                bool batch_first) {
  DimVector sizes(input_size);
  if (batch_first) std::swap(sizes[0], sizes[1]);
  const Tensor out = at::zeros(sizes, grad.dtype(), grad.layout(), grad.device()),
               batch_sizes = contiguous(batch_sizes_);
  const int64_t* const each = numbers(batch_sizes, "batch_sizes");
  int64_t offset = 0;
  for (int64_t t = 0; t < batch_sizes.numel(); ++t) {
    at::copy_(at::narrow(at::select(out, 0, t), 0, 0, each[t]), at::narrow(grad, 0, offset, each[t]));
    offset += each[t];
  }
  return batch_first ? at::transpose(out, 0, 1) : out;
}

std::tuple<Tensor, Tensor> composite::pad_packed_sequence(const Tensor& data, const Tensor& batch_sizes_,
                                                          bool batch_first, const Scalar& padding,
                                                          int64_t total_length) {
  const Tensor batch_sizes = contiguous(batch_sizes_);
  const int64_t* const each = numbers(batch_sizes, "batch_sizes");
  const int64_t real = batch_sizes.numel(), batch = real ? each[0] : 0;
  int64_t steps = real;
  if (total_length > 0) {
    TN_CHECK(total_length >= real,
             "Expected total_length to be at least the length of the longest sequence in input, but got total_length=",
             total_length, " and max sequence length being ", real);
    steps = total_length;
  }
  DimVector sizes(data.sizes());
  sizes[0] = batch;
  sizes.insert(0, steps);
  Tensor out = at::full(sizes, padding, data.dtype(), data.layout(), data.device());
  const Tensor lengths = empty({batch}, ScalarType::Long);
  // Steps of one size go at once.
  int64_t offset = 0, alive = batch;
  for (int64_t from = 0; from < real;) {
    int64_t to = from;
    while (to < real && each[to] == each[from]) ++to;
    const int64_t count = each[from], rows = (to - from) * count;
    DimVector block(data.sizes());
    block[0] = count;
    block.insert(0, to - from);
    at::copy_(at::narrow(at::narrow(out, 0, from, to - from), 1, 0, count),
              at::view(at::narrow(data, 0, offset, rows), block));
    offset += rows;
    for (; alive > (to < real ? each[to] : 0); --alive) lengths.data<int64_t>()[alive - 1] = to;
    from = to;
  }
  if (batch_first) out = at::transpose(out, 0, 1);
  return {out, lengths};
}

}  // namespace tn
