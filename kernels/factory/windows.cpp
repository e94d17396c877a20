#include "kernels/factory/windows.h"

#include <numbers>

#include "generated/ops/add.h"
#include "generated/ops/arange.h"
#include "generated/ops/cos.h"
#include "generated/ops/div.h"
#include "generated/ops/empty.h"
#include "generated/ops/i0.h"
#include "generated/ops/item.h"
#include "generated/ops/mul.h"
#include "generated/ops/narrow.h"
#include "generated/ops/ones.h"
#include "generated/ops/pow.h"
#include "generated/ops/rsub.h"
#include "generated/ops/scalar_tensor.h"
#include "generated/ops/sqrt.h"
#include "generated/ops/sub.h"

namespace tn::composite {
namespace {

constexpr double kPi = std::numbers::pi;

// Calls make(0, 1, ..., points - 1) for the symmetric window, and cuts it.
template <class Make>
Tensor window(const char* name, int64_t length, bool periodic, const NewTensor& o, Make&& make) {
  TN_CHECK(!o.layout || *o.layout == Layout::Strided, name,
           "() is not implemented for sparse types, got: ", layout_name(*o.layout));
  const ScalarType dtype = o.dtype.value_or(default_dtype());
  TN_CHECK(is_floating(dtype) || is_complex(dtype), name,
           "_window expects floating point dtypes, got: ", scalar_type_name(dtype));
  TN_CHECK(length >= 0, name, "_window requires non-negative window_length, got window_length=", length);
  if (length == 0) return at::empty({0}, dtype, o.layout, o.device, o.pin_memory);
  if (length == 1) return at::ones({1}, dtype, o.layout, o.device, o.pin_memory);
  const int64_t points = length + periodic;
  const Tensor full = make(at::arange(points, dtype, o.layout, o.device, o.pin_memory), points);
  return periodic ? at::narrow(full, 0, 0, length) : full;
}

}  // namespace

Tensor bartlett_window(int64_t length, bool periodic, const NewTensor& options) {
  return window("bartlett", length, periodic, options, [](const Tensor& n, int64_t points) {
    at::mul_(n, Scalar(2.0 / static_cast<double>(points - 1)));
    const int64_t rising = (points - 1) / 2 + 1;
    at::add_(at::mul_(at::narrow(n, 0, rising, points - rising), Scalar(-1)), Scalar(2));
    return n;
  });
}

Tensor blackman_window(int64_t length, bool periodic, const NewTensor& options) {
  return window("blackman", length, periodic, options, [](const Tensor& n, int64_t points) {
    at::mul_(n, Scalar(kPi / static_cast<double>(points - 1)));
    const Tensor twice = at::mul_(at::cos_(at::mul(n, Scalar(4))), Scalar(0.08));
    return at::add(at::sub(twice, at::mul_(at::cos_(at::mul(n, Scalar(2))), Scalar(0.5))), Scalar(0.42));
  });
}

namespace {

Tensor raised_cosine(const char* name, int64_t length, bool periodic, double alpha, double beta,
                     const NewTensor& options) {
  return window(name, length, periodic, options, [&](const Tensor& n, int64_t points) {
    at::mul_(n, Scalar(2 * kPi / static_cast<double>(points - 1)));
    at::add_(at::mul_(at::cos_(n), Scalar(-beta)), Scalar(alpha));
    return n;
  });
}

}  // namespace

Tensor hamming_window(int64_t length, bool periodic, double alpha, double beta, const NewTensor& options) {
  return raised_cosine("hamming", length, periodic, alpha, beta, options);
}
Tensor hann_window(int64_t length, bool periodic, const NewTensor& options) {
  return raised_cosine("hann", length, periodic, 0.5, 0.5, options);
}

Tensor kaiser_window(int64_t length, bool periodic, double beta, const NewTensor& options) {
  return window("kaiser", length, periodic, options, [&](const Tensor& n, int64_t points) {
    const double middle = static_cast<double>(points - 1) / 2;
    const Tensor place = at::div(at::sub(n, Scalar(middle)), Scalar(middle));
    const Tensor width = at::mul(at::sqrt(at::rsub(at::pow(place, Scalar(2)), Scalar(1))), Scalar(beta));
    const Tensor peak = at::i0(at::scalar_tensor(beta, ScalarType::Double));
    return at::div(at::i0(width), at::item(peak));
  });
}

}  // namespace tn::composite
