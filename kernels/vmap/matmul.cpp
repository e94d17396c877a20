// Batching rules of matrix products: stacks of matrices go to matmul, which broadcasts them.
#include "generated/ops/add.h"
#include "generated/ops/matmul.h"
#include "generated/ops/mul.h"
#include "generated/ops/squeeze.h"
#include "generated/ops/sum.h"
#include "generated/ops/transpose.h"
#include "generated/ops/unsqueeze.h"
#include "kernels/vmap/vmap.h"

namespace tn::vmap {

namespace {

// A row or a column from each vector.
Tensor column(const Tensor& v) { return at::unsqueeze(v, -1); }
Tensor row(const Tensor& v) { return at::unsqueeze(v, -2); }

void mm(const Site& s, Value* out) {
  const func::BelowTop below;
  out[0] = Value(s.wrap(at::matmul(s.front(0), s.front(1))));
}
void bmm(const Site& s, Value* out) {
  const func::BelowTop below;
  out[0] = Value(s.wrap(at::matmul(s.front(0), s.front(1))));
}
void mv(const Site& s, Value* out) {
  const func::BelowTop below;
  out[0] = Value(s.wrap(at::squeeze(at::matmul(s.front(0), column(s.front(1))), -1)));
}
void dot(const Site& s, Value* out) {
  const func::BelowTop below;
  out[0] = Value(s.wrap(at::squeeze(at::squeeze(at::matmul(row(s.front(0)), column(s.front(1))), -1), -1)));
}

bool is_one(const Scalar& s) { return s.to_complex() == std::complex<double>(1); }

// beta * self + alpha * product, where self broadcasts to the product's own dimensions.
Tensor combine(const Site& s, const Tensor& product, size_t beta_at) {
  const Scalar beta = s.args[beta_at].scalar(), alpha = s.args[beta_at + 1].scalar();
  const Tensor scaled = is_one(alpha) ? product : at::mul(product, alpha);
  if (beta.to_complex() == std::complex<double>(0)) return scaled;
  const Tensor self = s.padded(s.tensor(0), product.dim() - 1);
  return at::add(is_one(beta) ? self : at::mul(self, beta), scaled);
}
template <class Product>
void add_product(const Site& s, Value* out, size_t beta_at, Product product) {
  const func::BelowTop below;
  const bool either = s.batched(size_t{1}) || s.batched(size_t{2});
  Tensor made = product();
  // Only self has the batch: the product gets one, too.
  if (!either) made = at::unsqueeze(made, 0);
  out[0] = Value(s.wrap(combine(s, made, beta_at)));
}
void addmm(const Site& s, Value* out) {
  add_product(s, out, 3, [&] { return at::matmul(s.front(1), s.front(2)); });
}
void addmv(const Site& s, Value* out) {
  add_product(s, out, 3, [&] { return at::squeeze(at::matmul(s.front(1), column(s.front(2))), -1); });
}
void addr(const Site& s, Value* out) {
  add_product(s, out, 3, [&] { return at::matmul(column(s.front(1)), row(s.front(2))); });
}
void addbmm(const Site& s, Value* out) {
  add_product(s, out, 3, [&] { return at::sum(at::matmul(s.front(1), s.front(2)), IntArrayRef({-3})); });
}

}  // namespace

const Rule matmul_rules[] = {
    {"mm", nullptr, mm},         {"bmm", nullptr, bmm},       {"mv", nullptr, mv},       {"dot", nullptr, dot},
    {"addmm", nullptr, addmm},   {"baddbmm", nullptr, addmm}, {"addmv", nullptr, addmv}, {"addr", nullptr, addr},
    {"addbmm", nullptr, addbmm}, {nullptr, nullptr},
};

}  // namespace tn::vmap
