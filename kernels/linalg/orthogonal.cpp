// QR and its parts.
#include "generated/slots/linalg.h"
#include "kernels/linalg/common.h"

namespace tn {
namespace {

using namespace linalg;

struct QrMode {
  bool q, reduced;
};
QrMode qr_mode(std::string_view mode) {
  if (mode == "reduced") return {true, true};
  if (mode == "complete") return {true, false};
  TN_CHECK(mode == "r", "qr received unrecognized mode '", mode,
           "' but expected one of 'reduced' (default), 'r', or 'complete'");
  return {false, true};
}

}  // namespace

namespace slots {

void linalg_qr_meta(Outputs& outs, const Tensor& a, std::string_view mode) {
  check_matrix(a, "linalg.qr");
  check_floating_or_complex(a, "linalg.qr");
  const QrMode what = qr_mode(mode);
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  if (what.q) set_columns(outs, 0, joined(batch_of(a), {m, what.reduced ? k : m}), a.dtype(), a.device());
  else outs.set(0, {0}, a.dtype(), a.device());
  set_columns(outs, 1, joined(batch_of(a), {what.reduced ? k : m, n}), a.dtype(), a.device());
}
void linalg_qr_cpu(Outputs& outs, const Tensor& a, std::string_view mode) {
  const QrMode what = qr_mode(mode);
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  const Tensor work = columns_like(a.sizes(), a);
  with_element("geqrf_cpu", a.dtype(), [&]<class T>() {
    for_batch(product(batch_of(a)), 4 * m * n * k, [&](int64_t i) {
      std::vector<T> tau(static_cast<size_t>(k));
      const Mat<T> v = matrix<T>(work, i), r = matrix<T>(outs[1], i);
      qr(v, tau.data());
      copy(r, v.block(0, 0, r.m, n));
      keep_triangle(r, true);
      if (what.q) form_q(v, tau.data(), k, matrix<T>(outs[0], i));
    });
  });
}

void geqrf_meta(Outputs& outs, const Tensor& self) {
  TN_CHECK(self.dim() >= 2, "torch.geqrf: input must have at least 2 dimensions.");
  set_columns(outs, 0, self.sizes(), self.dtype(), self.device());
  outs.set(1, joined(batch_of(self), {std::min(self.size(-2), self.size(-1))}), self.dtype(), self.device());
}
void geqrf_cpu(Outputs& outs, const Tensor& self) {
  copy_into(outs[0], self);
  const int64_t m = self.size(-2), n = self.size(-1), k = std::min(m, n);
  with_element("geqrf_cpu", self.dtype(), [&]<class T>() {
    for_batch(product(batch_of(self)), 2 * m * n * k,
              [&](int64_t i) { qr(matrix<T>(outs[0], i), static_cast<T*>(outs[1]->raw_data()) + i * k); });
  });
}

void linalg_householder_product_meta(Outputs& outs, const Tensor& input, const Tensor& tau) {
  constexpr std::string_view kOp = "torch.linalg.householder_product";
  TN_CHECK(input.dim() >= 2, kOp, ": input must have at least 2 dimensions.");
  TN_CHECK(input.size(-2) >= input.size(-1), kOp, ": input.shape[-2] must be greater than or equal to input.shape[-1]");
  TN_CHECK(tau.dim() >= 1 && input.size(-1) >= tau.size(-1), kOp,
           ": input.shape[-1] must be greater than or equal to tau.shape[-1]");
  TN_CHECK(input.dim() - tau.dim() == 1, kOp,
           ": Expected tau to have one dimension less than input, but got tau.ndim equal to ", tau.dim(),
           " and input.ndim is equal to ", input.dim());
  const IntView batch = tau.sizes().slice(0, static_cast<size_t>(tau.dim() - 1));
  TN_CHECK(batch == batch_of(input), kOp,
           ": Expected batch dimensions of tau to be equal to input.shape[:-2], but got ", batch);
  TN_CHECK(tau.dtype() == input.dtype(), kOp, ": tau dtype ", scalar_type_name(tau.dtype()),
           " does not match input dtype ", scalar_type_name(input.dtype()));
  set_columns(outs, 0, input.sizes(), input.dtype(), input.device());
}
void linalg_householder_product_cpu(Outputs& outs, const Tensor& input, const Tensor& tau) {
  if (outs[0].numel() == 0) return;
  const Tensor v = columns_like(input.sizes(), input), factors = contiguous(tau);
  const int64_t k = tau.size(-1);
  with_element("orgqr_cpu", input.dtype(), [&]<class T>() {
    for_batch(product(batch_of(input)), 4 * input.size(-2) * input.size(-1) * k, [&](int64_t i) {
      form_q(matrix<T>(v, i), static_cast<const T*>(factors->raw_data()) + i * k, k, matrix<T>(outs[0], i));
    });
  });
}

void ormqr_meta(Outputs& outs, const Tensor& input, const Tensor& tau, const Tensor& other, bool left, bool) {
  TN_CHECK(input.dim() >= 2, "torch.ormqr: input must have at least 2 dimensions.");
  TN_CHECK(other.dim() >= 2, "torch.ormqr: other must have at least 2 dimensions.");
  const int64_t side = left ? -2 : -1;
  TN_CHECK(other.size(side) == input.size(-2), "torch.ormqr: other.shape[", side, "] must be equal to input.shape[-2]");
  TN_CHECK(tau.dim() >= 1 && std::min(other.size(side), input.size(-1)) == tau.size(-1),
           "torch.ormqr: tau.shape[-1] must be equal to min(other.shape[", side, "], input.shape[-1])");
  TN_CHECK(input.dim() - tau.dim() == 1,
           "torch.ormqr: Expected tau to have one dimension less than input, but got tau.ndim equal to ", tau.dim(),
           " and input.ndim is equal to ", input.dim());
  TN_CHECK(input.dim() == other.dim(),
           "torch.ormqr: Expected other to have the same number of dimensions as input, but got other.ndim equal to ",
           other.dim(), " and input.ndim is equal to ", input.dim());
  const IntView tau_batch = tau.sizes().slice(0, static_cast<size_t>(tau.dim() - 1));
  TN_CHECK(tau_batch == batch_of(input),
           "torch.ormqr: Expected batch dimensions of tau to be equal to input.shape[:-2], but got ", tau_batch);
  TN_CHECK(batch_of(other) == batch_of(input),
           "torch.ormqr: Expected batch dimensions of other to be equal to input.shape[:-2], but got ",
           batch_of(other));
  TN_CHECK(tau.dtype() == input.dtype(),
           "torch.ormqr: Expected input and tau to have the same dtype, but input has dtype",
           scalar_type_name(input.dtype()), " and tau has dtype ", scalar_type_name(tau.dtype()));
  TN_CHECK(other.dtype() == input.dtype(),
           "torch.ormqr: Expected input and other to have the same dtype, but input has dtype",
           scalar_type_name(input.dtype()), " and other has dtype ", scalar_type_name(other.dtype()));
  set_columns(outs, 0, other.sizes(), other.dtype(), other.device());
}
void ormqr_cpu(Outputs& outs, const Tensor& input, const Tensor& tau, const Tensor& other, bool left, bool transpose) {
  copy_into(outs[0], other);
  if (outs[0].numel() == 0) return;
  const Tensor v = columns_like(input.sizes(), input), factors = contiguous(tau);
  const int64_t k = tau.size(-1);
  with_element("ormqr_cpu", input.dtype(), [&]<class T>() {
    for_batch(product(batch_of(input)), 4 * other.size(-2) * other.size(-1) * k, [&](int64_t i) {
      apply_q(matrix<T>(v, i), static_cast<const T*>(factors->raw_data()) + i * k, k, left,
              transpose ? Op::Adjoint : Op::None, matrix<T>(outs[0], i));
    });
  });
}

}  // namespace slots
}  // namespace tn
