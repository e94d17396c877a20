#include "kernels/norm/batch.h"

#include <algorithm>

#include "runtime/copy.h"
#include "runtime/error.h"
#include "runtime/shape.h"
#include "runtime/threads.h"

namespace tn::norm {
namespace {

// A run's address.
const char* at(const Planes& p, const void* x, int64_t outer, int64_t channel) {
  return static_cast<const char*>(x) +
         (outer * p.channels + channel) * p.inner * static_cast<int64_t>(item_size(p.dtype));
}
char* at(const Planes& p, void* x, int64_t outer, int64_t channel) {
  return const_cast<char*>(at(p, static_cast<const void*>(x), outer, channel));
}

template <class F>
void each_channel(const Planes& p, const F& f) {
  parallel_for(0, p.channels, std::max<int64_t>(1, 16384 / std::max<int64_t>(p.each(), 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t c = begin; c < end; ++c) f(c);
               });
}

// Rows of columns in chunks that the shape determines, each with its own `width` sums; then all together.
template <class F>
std::vector<double> column_sums(const Planes& p, int64_t width, const F& f) {
  const int64_t rows = p.outer, chunk = std::max<int64_t>({1, (rows + 31) / 32, 16384 / p.channels}),
                chunks = (rows + chunk - 1) / chunk;
  std::vector<double> partial(static_cast<size_t>(chunks * width));
  parallel_for(0, rows, chunk,
               [&](int64_t begin, int64_t end) { f(begin, end - begin, partial.data() + begin / chunk * width); });
  for (int64_t k = 1; k < chunks; ++k)
    for (int64_t c = 0; c < width; ++c) partial[static_cast<size_t>(c)] += partial[static_cast<size_t>(k * width + c)];
  partial.resize(static_cast<size_t>(width));
  return partial;
}

template <class F>
void each_block(const Planes& p, const F& f) {
  parallel_for(0, p.outer, std::max<int64_t>(1, 16384 / std::max<int64_t>(p.channels, 1)),
               [&](int64_t begin, int64_t end) { f(begin, end - begin); });
}

}  // namespace

Planes planes_of(const Tensor& x) {
  Planes p;
  p.dtype = x.dtype();
  p.channels = x->size(1);
  p.outer = x->size(0);
  p.inner = 1;
  const bool last = !x.is_contiguous();
  for (int64_t d = 2; d < x.dim(); ++d) (last ? p.outer : p.inner) *= x->size(d);
  return p;
}

std::vector<double> channel_means(const Planes& p, const void* x) {
  const ChannelKernels& run = channel_kernels(p.dtype);
  std::vector<double> mean;
  if (p.columns()) {
    mean = column_sums(p, p.channels, [&](int64_t row, int64_t rows, double* sums) {
      run.column_sums(at(p, x, row, 0), rows, p.channels, sums);
    });
  } else {
    mean.resize(static_cast<size_t>(p.channels));
    each_channel(p, [&](int64_t c) {
      double sum = 0;
      for (int64_t i = 0; i < p.outer; ++i) sum += run.run_sum(at(p, x, i, c), p.inner);
      mean[static_cast<size_t>(c)] = sum;
    });
  }
  for (double& m : mean) m /= static_cast<double>(p.each());
  return mean;
}

std::vector<double> channel_squares(const Planes& p, const void* x, const double* mean) {
  const ChannelKernels& run = channel_kernels(p.dtype);
  if (p.columns())
    return column_sums(p, p.channels, [&](int64_t row, int64_t rows, double* sums) {
      run.column_squares(at(p, x, row, 0), rows, p.channels, mean, sums);
    });
  std::vector<double> squares(static_cast<size_t>(p.channels));
  each_channel(p, [&](int64_t c) {
    double sum = 0;
    for (int64_t i = 0; i < p.outer; ++i) sum += run.run_squares(at(p, x, i, c), p.inner, mean[c]);
    squares[static_cast<size_t>(c)] = sum;
  });
  return squares;
}

std::vector<double> channel_dots(const Planes& p, const void* x, const void* grad, const double* mean) {
  const ChannelKernels& run = channel_kernels(p.dtype);
  if (p.columns())
    return column_sums(p, 2 * p.channels, [&](int64_t row, int64_t rows, double* sums) {
      run.column_dots(at(p, x, row, 0), at(p, grad, row, 0), rows, p.channels, mean, sums, sums + p.channels);
    });
  std::vector<double> sums(static_cast<size_t>(2 * p.channels));
  each_channel(p, [&](int64_t c) {
    double pair[2] = {0, 0};
    for (int64_t i = 0; i < p.outer; ++i) run.run_dots(at(p, x, i, c), at(p, grad, i, c), p.inner, mean[c], pair);
    sums[static_cast<size_t>(c)] = pair[0];
    sums[static_cast<size_t>(p.channels + c)] = pair[1];
  });
  return sums;
}

void channel_affine(const Planes& p, const void* x, const double* scale, const double* shift, void* out) {
  const ChannelKernels& run = channel_kernels(p.dtype);
  if (p.columns()) {
    each_block(p, [&](int64_t row, int64_t rows) {
      run.column_affine(at(p, x, row, 0), rows, p.channels, scale, shift, at(p, out, row, 0));
    });
    return;
  }
  parallel_for(0, p.outer * p.channels, std::max<int64_t>(1, 16384 / std::max<int64_t>(p.inner, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t k = begin; k < end; ++k) {
                   const int64_t c = k % p.channels;
                   run.run_affine(at(p, x, 0, k), p.inner, scale[c], shift[c], at(p, out, 0, k));
                 }
               });
}

void channel_gradient(const Planes& p, const void* x, const void* grad, const double* slopes, void* out) {
  const ChannelKernels& run = channel_kernels(p.dtype);
  if (p.columns()) {
    each_block(p, [&](int64_t row, int64_t rows) {
      run.column_gradient(at(p, x, row, 0), at(p, grad, row, 0), rows, p.channels, slopes, at(p, out, row, 0));
    });
    return;
  }
  parallel_for(0, p.outer * p.channels, std::max<int64_t>(1, 16384 / std::max<int64_t>(p.inner, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t k = begin; k < end; ++k) {
                   const int64_t c = k % p.channels;
                   const Slope s = {slopes[c], slopes[p.channels + c], slopes[2 * p.channels + c],
                                    slopes[3 * p.channels + c]};
                   run.run_gradient(at(p, x, 0, k), at(p, grad, 0, k), p.inner, s, at(p, out, 0, k));
                 }
               });
}

bool is_mixed(const Tensor& input, std::initializer_list<OptionalTensor> parameters) {
  ScalarType first = input.dtype();
  for (const OptionalTensor& t : parameters)
    if (t) {
      first = t->dtype();
      break;
    }
  const bool mixed = first != input.dtype();
  for (const OptionalTensor& t : parameters) {
    if (!t) continue;
    if (mixed) {
      TN_CHECK(t->dtype() == ScalarType::Float, "mixed dtype (CPU): expect parameter to have scalar type of Float");
    } else {
      TN_CHECK(t->dtype() == input.dtype(), "expected scalar type ", scalar_type_name(input.dtype()), " but found ",
               scalar_type_name(t->dtype()));
    }
  }
  TN_CHECK(!mixed || is_reduced_float(input.dtype()), "mixed dtype (CPU): all inputs must share same datatype.");
  return mixed;
}

std::vector<double> channel_values(OptionalTensor t, int64_t channels, double otherwise) {
  std::vector<double> values(static_cast<size_t>(channels), otherwise);
  if (!t) return values;
  const Tensor flat = contiguous(*t);
  convert_row(flat.dtype(), static_cast<const char*>(flat->raw_data()), static_cast<int64_t>(flat.itemsize()),
              ScalarType::Double, reinterpret_cast<char*>(values.data()), sizeof(double),
              std::min(channels, flat.numel()));
  return values;
}

}  // namespace tn::norm
