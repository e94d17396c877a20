// Gradients of layer norm: one pass over the rows gives all three. The parameters' gradients are summed up in chunks of
// rows that the shape determines.
#include <algorithm>
#include <vector>

#include "generated/slots/norm.h"
#include "kernels/common/halves.h"
#include "kernels/norm/composites.h"
#include "kernels/norm/rows.h"
#include "runtime/copy.h"
#include "runtime/error.h"
#include "runtime/shape.h"
#include "runtime/threads.h"

namespace tn {
namespace {

struct Operands {
  Tensor grad, x, mean, rstd, weight, out;  // mean, rstd and weight wide; out undefined where nobody asks
  int64_t rows, n;
};

// S: how elements are stored; T: float, or double for double. The parameters' gradients in chunks, [chunks, 2, n].
template <class S, class T>
void run_rows(const Operands& o, int64_t begin, int64_t end, T* parameters) {
  constexpr bool kNarrow = sizeof(S) < sizeof(T);
  const int64_t n = o.n;
  std::vector<T> room(kNarrow ? static_cast<size_t>(3 * n) : 0);
  norm::GradientRow<T> row{};
  row.n = n;
  row.weight = o.weight.defined() ? o.weight.data<T>() : nullptr;
  if (parameters) row.weight_grad = parameters, row.bias_grad = parameters + n;
  for (int64_t i = begin; i < end; ++i) {
    row.mean = o.mean.data<T>()[i];
    row.rstd = o.rstd.data<T>()[i];
    if constexpr (kNarrow) {
      widen(o.x.dtype(), o.grad.data<S>() + i * n, room.data(), static_cast<size_t>(n));
      widen(o.x.dtype(), o.x.data<S>() + i * n, room.data() + n, static_cast<size_t>(n));
      row.grad = room.data(), row.x = room.data() + n, row.out = o.out.defined() ? room.data() + 2 * n : nullptr;
    } else {
      row.grad = o.grad.data<T>() + i * n, row.x = o.x.data<T>() + i * n,
      row.out = o.out.defined() ? o.out.data<T>() + i * n : nullptr;
    }
    norm::gradient(row);
    if constexpr (kNarrow)
      if (row.out) shorten(o.x.dtype(), row.out, o.out.data<S>() + i * n, static_cast<size_t>(n));
  }
}

template <class S, class T>
void run(const Operands& o, const Tensor& weight_grad, const Tensor& bias_grad) {
  const int64_t n = o.n, chunk = std::max<int64_t>({1, 16384 / n, (o.rows + 31) / 32}),
                chunks = (o.rows + chunk - 1) / chunk;
  const bool parameters = weight_grad.defined() || bias_grad.defined();
  std::vector<T> sums(parameters ? static_cast<size_t>(chunks * 2 * n) : 0);
  parallel_for(0, o.rows, chunk, [&](int64_t begin, int64_t end) {
    run_rows<S, T>(o, begin, end, parameters ? sums.data() + begin / chunk * 2 * n : nullptr);
  });
  const auto combine = [&](const Tensor& to, int64_t which) {
    if (!to.defined()) return;
    T* const out = to.data<T>();
    parallel_for(0, n, 1024, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        double sum = 0;
        for (int64_t c = 0; c < chunks; ++c)
          sum += static_cast<double>(sums[static_cast<size_t>((2 * c + which) * n + k)]);
        out[k] = static_cast<T>(sum);
      }
    });
  };
  combine(weight_grad, 0);
  combine(bias_grad, 1);
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> native::native_layer_norm_backward(const Tensor& grad_out, const Tensor& input,
                                                                      IntArrayRef shape, const Tensor& mean,
                                                                      const Tensor& rstd, OptionalTensor weight,
                                                                      OptionalTensor bias, std::array<bool, 3> mask) {
  composite::check_normalized_shape(input, shape, weight, bias);
  TN_CHECK_AS(NotImplemented, is_floating(input.dtype()), "\"LayerNormBackwardKernelImpl\" not implemented for '",
              scalar_type_name(input.dtype()), "'");
  TN_CHECK(grad_out.sizes() == input.sizes(), "native_layer_norm_backward: expected a gradient like the input, got ",
           grad_out.sizes(), " and ", input.sizes());
  const ScalarType compute = input.dtype() == ScalarType::Double ? ScalarType::Double : ScalarType::Float;
  const auto wide = [&](const Tensor& t) { return contiguous(cast(t, compute)); };
  const int64_t n = product(shape), rows = n ? input.numel() / n : 0;
  const ScalarType parameter = weight ? weight->dtype() : input.dtype();
  Tensor dx = mask[0] ? empty(input.sizes(), input.dtype()) : Tensor(),
         dweight = mask[1] ? empty(shape, compute) : Tensor(), dbias = mask[2] ? empty(shape, compute) : Tensor();
  if (rows == 0 || n == 0) {
    if (dweight.defined()) zero(dweight);
    if (dbias.defined()) zero(dbias);
  } else {
    const Operands o{contiguous(cast(grad_out, input.dtype())),
                     contiguous(input),
                     wide(mean),
                     wide(rstd),
                     weight ? wide(*weight) : Tensor(),
                     dx,
                     rows,
                     n};
    if (input.dtype() == ScalarType::Double) run<double, double>(o, dweight, dbias);
    else if (input.dtype() == ScalarType::Float) run<float, float>(o, dweight, dbias);
    else run<uint16_t, float>(o, dweight, dbias);
  }
  if (dweight.defined()) dweight = cast(dweight, parameter);
  if (dbias.defined()) dbias = cast(dbias, parameter);
  return {dx, dweight, dbias};
}

}  // namespace tn
