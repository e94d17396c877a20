// Norms of matrices, condition numbers, ranks and pseudoinverses.
#include <cmath>
#include <limits>

#include "generated/ops/abs.h"
#include "generated/ops/amax.h"
#include "generated/ops/amin.h"
#include "generated/ops/div.h"
#include "generated/ops/gt.h"
#include "generated/ops/linalg_eigh.h"
#include "generated/ops/linalg_eigvalsh.h"
#include "generated/ops/linalg_inv_ex.h"
#include "generated/ops/linalg_matrix_norm.h"
#include "generated/ops/linalg_matrix_rank.h"
#include "generated/ops/linalg_pinv.h"
#include "generated/ops/linalg_svd.h"
#include "generated/ops/linalg_svdvals.h"
#include "generated/ops/linalg_vector_norm.h"
#include "generated/ops/mH.h"
#include "generated/ops/masked_fill.h"
#include "generated/ops/matmul.h"
#include "generated/ops/maximum.h"
#include "generated/ops/mul.h"
#include "generated/ops/nan_to_num.h"
#include "generated/ops/narrow.h"
#include "generated/ops/permute.h"
#include "generated/ops/reciprocal.h"
#include "generated/ops/select.h"
#include "generated/ops/sum.h"
#include "generated/ops/to.h"
#include "generated/ops/unsqueeze.h"
#include "generated/ops/where.h"
#include "generated/ops/zeros.h"
#include "kernels/linalg/common.h"
#include "kernels/linalg/composites.h"

namespace tn::composite {
namespace {

using namespace linalg;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor zeros_of(IntView sizes, const Tensor& like, ScalarType dtype) {
  return at::zeros(sizes, dtype, std::nullopt, like.device());
}

// Both dimensions, the given two last; and the way back.
struct Moved {
  std::vector<int64_t> forth, back;
};
Moved to_the_end(int64_t ndim, int64_t first, int64_t second) {
  Moved out;
  for (int64_t d = 0; d < ndim; ++d)
    if (d != first && d != second) out.forth.push_back(d);
  out.forth.push_back(first);
  out.forth.push_back(second);
  out.back.resize(out.forth.size());
  for (size_t i = 0; i < out.forth.size(); ++i) out.back[static_cast<size_t>(out.forth[i])] = static_cast<int64_t>(i);
  return out;
}

std::pair<int64_t, int64_t> check_norm(const Tensor& self, IntView dim, std::optional<ScalarType> dtype,
                                       bool low_precision) {
  constexpr std::string_view kOp = "linalg.matrix_norm";
  check_matrix(self, kOp);
  std::ostringstream list;
  for (size_t i = 0; i < dim.size(); ++i) list << (i ? ", " : "") << dim[i];
  TN_CHECK(dim.size() == 2, kOp, ": dim must be a 2-tuple. Got ", list.str());
  check_floating_or_complex(self, kOp, low_precision);
  const int64_t first = wrap_dim(dim[0], self.dim()), second = wrap_dim(dim[1], self.dim());
  TN_CHECK(first != second, kOp, ": dims must be different. Got (", dim[0], ", ", dim[1], ")");
  if (dtype) {
    TN_CHECK(is_floating(*dtype) || is_complex(*dtype), kOp, ": dtype should be floating point or complex. Got ",
             scalar_type_name(*dtype));
    TN_CHECK(is_complex(*dtype) == self.is_complex(), kOp, ": dtype should be ", self.is_complex() ? "complex" : "real",
             " for ", self.is_complex() ? "complex" : "real", " inputs, but got ", scalar_type_name(*dtype));
    TN_CHECK(promote_types(self.dtype(), *dtype) == *dtype, kOp, ": the dtype of the input (",
             scalar_type_name(self.dtype()), ") should be convertible without narrowing to the specified dtype (",
             scalar_type_name(*dtype), ")");
  }
  return {first, second};
}

Tensor extreme(const Tensor& t, int64_t dim, bool keepdim, bool largest) {
  if (largest && t.size(dim) == 0) {
    DimVector sizes(t.sizes());
    if (keepdim) sizes[static_cast<size_t>(wrap_dim(dim, t.dim()))] = 1;
    else sizes.erase(static_cast<size_t>(wrap_dim(dim, t.dim())));
    return zeros_of(sizes, t, t.dtype());
  }
  return largest ? at::amax(t, dim, keepdim) : at::amin(t, dim, keepdim);
}

Tensor singular_values(const Tensor& self, const Moved& moved, std::optional<ScalarType> dtype) {
  const Tensor wide = dtype ? at::to(self, *dtype) : self;
  return at::linalg_svdvals(at::permute(wide, moved.forth));
}
Tensor back(const Tensor& result, const Moved& moved, bool keepdim) {
  return keepdim ? at::permute(at::unsqueeze(result, -1), moved.back) : result;
}

double epsilon(ScalarType dtype) {
  const ScalarType real = real_of(dtype);
  TN_CHECK(real == ScalarType::Float || real == ScalarType::Double,
           "This function doesn't handle types other than float and double");
  return real == ScalarType::Float ? static_cast<double>(std::numeric_limits<float>::epsilon())
                                   : std::numeric_limits<double>::epsilon();
}

double default_rtol(const Tensor& self) {
  return epsilon(self.dtype()) * static_cast<double>(std::max(self.size(-1), self.size(-2)));
}

void check_tolerance(OptionalTensor t, const char* op, const char* name) {
  TN_CHECK(!t || !t->is_complex(), op, ": ", name, " tensor of complex type is not supported. Got ",
           scalar_type_name(t->dtype()));
}

struct Tolerance {
  Tensor atol, rtol;
};
Tolerance tolerance(const Tensor& self, OptionalTensor atol, OptionalTensor rtol, const char* op) {
  check_tolerance(atol, op, "atol");
  check_tolerance(rtol, op, "rtol");
  Tolerance out;
  const ScalarType real = real_of(self.dtype());
  out.atol = atol ? *atol : zeros_of({}, self, ScalarType::Double);
  if (rtol) {
    out.rtol = *rtol;
  } else {
    const Tensor standard = scalar_tensor(default_rtol(self), real, self.device());
    // An absolute bound replaces the default one.
    out.rtol = atol ? at::where(at::gt(*atol, 0), zeros_of({}, self, real), standard) : standard;
  }
  return out;
}
std::pair<double, double> tolerance(const Tensor& self, std::optional<double> atol, std::optional<double> rtol) {
  const double absolute = atol.value_or(0.0);
  return {absolute, rtol ? *rtol : absolute > 0 ? 0.0 : default_rtol(self)};
}

}  // namespace

Tensor linalg_matrix_norm(const Tensor& self, const Scalar& ord, IntView dim, bool keepdim,
                          std::optional<ScalarType> dtype) {
  const double order = ord.to_double(), size = std::abs(order);
  auto [first, second] = check_norm(self, dim, dtype, size != 2);
  TN_CHECK(size == 1 || size == 2 || size == kInfinity, "linalg.matrix_norm: Order ", order, " not supported.");
  const bool largest = order > 0;
  if (size == 2) {
    const Moved moved = to_the_end(self.dim(), first, second);
    return back(extreme(singular_values(self, moved, dtype), -1, keepdim, largest), moved, keepdim);
  }
  if (size == kInfinity) std::swap(first, second);
  if (first < second && !keepdim) --second;
  const int64_t summed[] = {first};
  return extreme(at::linalg_vector_norm(self, 1, IntView(summed, 1), keepdim, dtype), second, keepdim, largest);
}

Tensor linalg_matrix_norm(const Tensor& self, std::string_view ord, IntView dim, bool keepdim,
                          std::optional<ScalarType> dtype) {
  const auto [first, second] = check_norm(self, dim, dtype, ord == "fro");
  TN_CHECK(ord == "fro" || ord == "nuc", "linalg.matrix_norm: Order ", ord, " not supported.");
  if (ord == "fro") return at::linalg_vector_norm(self, 2, dim, keepdim, dtype);
  const Moved moved = to_the_end(self.dim(), first, second);
  const int64_t last[] = {-1};
  return back(at::sum(singular_values(self, moved, dtype), IntView(last, 1), keepdim), moved, keepdim);
}

Tensor linalg_norm(const Tensor& self, const std::optional<Scalar>& ord, OptionalIntArrayRef dim, bool keepdim,
                   std::optional<ScalarType> dtype) {
  if (dim) {
    TN_CHECK(dim->size() == 1 || dim->size() == 2,
             "linalg.norm: If dim is specified, it must be of length 1 or 2. Got ", *dim);
  } else if (ord) {
    TN_CHECK(self.dim() == 1 || self.dim() == 2,
             "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got ", self.dim(), "D.");
  }
  if (ord && (dim ? dim->size() == 2 : self.dim() == 2))
    return at::linalg_matrix_norm(self, *ord, dim ? *dim : IntView{0, 1}, keepdim, dtype);
  return at::linalg_vector_norm(self, ord ? *ord : Scalar(2), dim, keepdim, dtype);
}

Tensor linalg_norm(const Tensor& self, std::string_view ord, OptionalIntArrayRef dim, bool keepdim,
                   std::optional<ScalarType> dtype) {
  if (dim) {
    TN_CHECK(dim->size() == 1 || dim->size() == 2,
             "linalg.norm: If dim is specified, it must be of length 1 or 2. Got ", *dim);
  } else {
    TN_CHECK(self.dim() == 1 || self.dim() == 2,
             "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got ", self.dim(), "D.");
  }
  return at::linalg_matrix_norm(self, ord, dim ? *dim : IntView{0, 1}, keepdim, dtype);
}

Tensor nuclear_norm(const Tensor& self, IntView dim, bool keepdim) {
  warn_deprecated("at::nuclear_norm", "linalg.matrix_norm(A, 'nuc', dim, keepdim)");
  return at::linalg_matrix_norm(self, "nuc", dim, keepdim);
}

namespace {

Tensor cond_through_inverse(const Tensor& self, const auto& norm) {
  const auto [inverse, info] = at::linalg_inv_ex(self, false);
  const Tensor singular = at::unsqueeze(at::unsqueeze(at::gt(info, 0), -1), -1);
  const Tensor result = at::mul(norm(at::masked_fill(inverse, singular, kInfinity)), norm(self));
  // Zero times infinity is infinity here.
  return at::nan_to_num(result, kInfinity, kInfinity, -kInfinity);
}
void check_cond(const Tensor& self) {
  TN_CHECK(self.dim() >= 2, "linalg.cond: The input tensor must have at least 2 dimensions.");
}

}  // namespace

Tensor linalg_cond(const Tensor& self, const std::optional<Scalar>& p) {
  check_cond(self);
  const double order = p ? p->to_double() : 2, size = std::abs(order);
  TN_CHECK(size == 1 || size == 2 || size == kInfinity, "linalg.cond got an invalid norm type: ", order);
  const ScalarType real = real_of(self.dtype());
  if (self.numel() == 0) {
    if (size != 2) check_square(self, str("linalg.cond(ord=", order, ")"));
    return zeros_of(batch_of(self), self, real);
  }
  if (size == 2) {
    const Tensor s = at::linalg_svdvals(self);
    const Tensor most = at::select(s, -1, 0), least = at::select(s, -1, -1);
    return order > 0 ? at::div(most, least) : at::div(least, most);
  }
  check_square(self, str("linalg.cond(ord=", order, ")"));
  return cond_through_inverse(self, [&](const Tensor& t) { return at::linalg_matrix_norm(t, order, IntView{-2, -1}); });
}

Tensor linalg_cond(const Tensor& self, std::string_view p) {
  check_cond(self);
  TN_CHECK(p == "fro" || p == "nuc", "linalg.cond got an invalid norm type: ", p);
  check_square(self, str("linalg.cond(ord=", p, ")"));
  if (self.numel() == 0) return zeros_of(batch_of(self), self, real_of(self.dtype()));
  if (p == "nuc") {
    // The inverse's singular values are these ones' inverses; infinite ones have no decomposition.
    const Tensor s = at::linalg_svdvals(self);
    const int64_t last[] = {-1};
    return at::mul(at::sum(s, IntView(last, 1)), at::sum(at::reciprocal(s), IntView(last, 1)));
  }
  return cond_through_inverse(self, [&](const Tensor& t) { return at::linalg_matrix_norm(t, "fro", IntView{-2, -1}); });
}

Tensor linalg_matrix_rank(const Tensor& self, OptionalTensor atol, OptionalTensor rtol, bool hermitian) {
  check_matrix(self, "torch.linalg.matrix_rank", "input");
  const Tolerance bounds = tolerance(self, atol, rtol, "torch.linalg.matrix_rank");
  if (self.numel() == 0) return zeros_of(batch_of(self), self, ScalarType::Long);
  const Tensor s = hermitian ? at::abs(at::linalg_eigvalsh(self)) : at::linalg_svdvals(self);
  const Tensor most = at::amax(s, -1, true);
  const Tensor bound = at::maximum(at::unsqueeze(bounds.atol, -1), at::mul(at::unsqueeze(bounds.rtol, -1), most));
  const int64_t last[] = {-1};
  return at::sum(at::gt(s, bound), IntView(last, 1));
}

Tensor linalg_matrix_rank(const Tensor& self, std::optional<double> atol, std::optional<double> rtol, bool hermitian) {
  check_matrix(self, "torch.linalg.matrix_rank", "input");
  const auto [absolute, relative] = tolerance(self, atol, rtol);
  return at::linalg_matrix_rank(self, scalar_tensor(absolute, ScalarType::Double, self.device()),
                                scalar_tensor(relative, ScalarType::Double, self.device()), hermitian);
}

Tensor linalg_pinv(const Tensor& self, OptionalTensor atol, OptionalTensor rtol, bool hermitian) {
  const ScalarType real = real_of(self.dtype());
  TN_CHECK(self.dim() >= 2 && (real == ScalarType::Float || real == ScalarType::Double), "linalg.pinv(",
           scalar_type_name(self.dtype()), '{', self.sizes(),
           "}): expected a tensor with 2 or more dimensions of float, double, cfloat or cdouble types");
  const Tolerance bounds = tolerance(self, atol, rtol, "torch.linalg.pinv");
  if (self.numel() == 0)
    return empty(joined(batch_of(self), {self.size(-1), self.size(-2)}), self.dtype(), self.device());
  const auto inverse = [&](const Tensor& s, const Tensor& size, const Tensor& most) {
    const Tensor bound = at::maximum(at::unsqueeze(bounds.atol, -1), at::mul(at::unsqueeze(bounds.rtol, -1), most));
    const Tensor kept = at::where(at::gt(size, bound), at::reciprocal(s), zeros_of({}, self, s.dtype()));
    return at::unsqueeze(at::to(kept, self.dtype()), -2);
  };
  if (hermitian) {
    const auto [s, u] = at::linalg_eigh(self);
    const Tensor size = at::abs(s);
    return at::matmul(at::mul(u, inverse(s, size, at::amax(size, -1, true))), at::mH(u));
  }
  const auto [u, s, vh] = at::linalg_svd(self, false);
  return at::matmul(at::mul(at::mH(vh), inverse(s, s, at::narrow(s, -1, 0, 1))), at::mH(u));
}

Tensor linalg_pinv(const Tensor& self, std::optional<double> atol, std::optional<double> rtol, bool hermitian) {
  const ScalarType real = real_of(self.dtype());
  TN_CHECK(self.dim() >= 2 && (real == ScalarType::Float || real == ScalarType::Double), "linalg.pinv(",
           scalar_type_name(self.dtype()), '{', self.sizes(),
           "}): expected a tensor with 2 or more dimensions of float, double, cfloat or cdouble types");
  const auto [absolute, relative] = tolerance(self, atol, rtol);
  return at::linalg_pinv(self, scalar_tensor(absolute, ScalarType::Double, self.device()),
                         scalar_tensor(relative, ScalarType::Double, self.device()), hermitian);
}

}  // namespace tn::composite
