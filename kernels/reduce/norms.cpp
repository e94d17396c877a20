// Vector norms over dimensions.
#include <cmath>
#include <limits>

#include "generated/slots/reduce.h"
#include "kernels/reduce/floats.h"
#include "kernels/reduce/load.h"
#include "runtime/copy.h"
#include "runtime/error.h"

namespace tn {
namespace {

using namespace reduce;

template <class S, class T>
void store_root(T value, char* to, double) {
  *reinterpret_cast<S*>(to) = convert<S>(std::sqrt(value));
}
template <class S, class T>
void store_power(T value, char* to, double exponent) {
  *reinterpret_cast<S*>(to) = convert<S>(static_cast<T>(std::pow(static_cast<double>(value), exponent)));
}

// |x|^p, with |x| for p = 1 and whether it is not zero for p = 0.
Tensor powers(const Tensor& self, double p) {
  const Tensor x = contiguous(self);
  const ScalarType real = is_reduced_float(real_of(x.dtype())) ? ScalarType::Float : real_of(x.dtype());
  const Tensor out = empty(x.sizes(), real);
  const int64_t n = x.numel();
  visit(x.dtype(), [&]<class S>() {
    using T = ComputeType<S>;
    if constexpr (!std::is_same_v<T, int64_t>) {
      using R = decltype(std::abs(T{}));
      const S* from = n ? x.data<S>() : nullptr;
      R* to = n ? out.data<R>() : nullptr;
      parallel_for(0, n, 4096, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const R size = std::abs(convert<T>(from[i]));
          to[i] = p == 0 ? static_cast<R>(size != 0) : p == 1 ? size : std::pow(size, static_cast<R>(p));
        }
      });
    }
  });
  return out;
}

void vector_norm(const Tensor& out, const Tensor& given, double p, uint64_t mask, std::optional<ScalarType> dtype) {
  Tensor x = dtype ? cast(given, *dtype) : given;
  const bool infinite = std::isinf(p);
  const bool plain = !is_complex(x.dtype()) && (p == 2 || p == 1 || infinite);
  if (!plain) x = powers(x, infinite ? 1 : p);
  const Kind kind = infinite ? (p > 0 ? Kind::MaxAbs : Kind::MinAbs)
                    : !plain ? Kind::Sum
                    : p == 2 ? Kind::SumSquares
                             : Kind::SumAbs;
  visit(x.dtype(), [&]<class S>() {
    using T = ComputeType<S>;
    if constexpr (std::is_floating_point_v<T>) {
      visit(out.dtype(), [&]<class O>() {
        const Store<T> store = infinite || p == 1 || p == 0 ? store_as<O, T>
                               : p == 2                     ? store_root<O, T>
                                                            : store_power<O, T>;
        reduce_into<S, T>(out, x, mask, float_operation<T>(kind), store, 1 / p);
      });
    }
  });
}

void set_norm(Outputs& outs, const char* name, const Tensor& self, double p, OptionalIntArrayRef dim, bool keepdim,
              std::optional<ScalarType> dtype) {
  TN_CHECK(is_floating(self.dtype()) || is_complex(self.dtype()), name,
           ": Expected a floating point or complex tensor as input. Got ", scalar_type_name(self.dtype()));
  if (dtype) {
    TN_CHECK(is_floating(*dtype) || is_complex(*dtype), name, ": dtype should be floating point or complex. Got ",
             scalar_type_name(*dtype));
    TN_CHECK(is_complex(self.dtype()) == is_complex(*dtype), name, ": dtype should be ",
             is_complex(self.dtype()) ? "complex" : "real", " for ", is_complex(self.dtype()) ? "complex" : "real",
             " inputs, but got ", scalar_type_name(*dtype));
  }
  const uint64_t mask = mask_of(self, dim);
  if ((p < 0 || std::isinf(p)) && self.numel() == 0) {
    TN_CHECK(dim && !dim->empty(), name, " cannot compute the ", p,
             " norm on an empty tensor because the operation does not have an identity");
    // The missing space is upstream's.
    for (int64_t d : *dim)
      TN_CHECK(self.dim() == 0 || self.size(d) != 0, name, " cannot compute the ", p, " norm on the dimension ", d,
               "because this dimension is empty and the operation does not have an identity");
  }
  outs.set(0, reduced_sizes(self.sizes(), mask, keepdim), real_of(dtype.value_or(self.dtype())), self.device());
}
double order(const std::optional<Scalar>& p) { return p ? p->to_double() : 2.0; }
constexpr const char* kName = "linalg.vector_norm";

}  // namespace

namespace slots {

void linalg_vector_norm_meta(Outputs& outs, const Tensor& self, const Scalar& ord, OptionalIntArrayRef dim,
                             bool keepdim, std::optional<ScalarType> dtype) {
  set_norm(outs, kName, self, ord.to_double(), dim, keepdim, dtype);
}
void linalg_vector_norm_cpu(Outputs& outs, const Tensor& self, const Scalar& ord, OptionalIntArrayRef dim, bool,
                            std::optional<ScalarType> dtype) {
  vector_norm(outs[0], self, ord.to_double(), mask_of(self, dim), dtype);
}
void norm_Scalar_meta(Outputs& outs, const Tensor& self, const Scalar& p) {
  set_norm(outs, kName, self, p.to_double(), {}, false, {});
}
void norm_Scalar_cpu(Outputs& outs, const Tensor& self, const Scalar& p) {
  vector_norm(outs[0], self, p.to_double(), mask_of(self, OptionalIntArrayRef()), {});
}
void norm_ScalarOpt_dtype_meta(Outputs& outs, const Tensor& self, const std::optional<Scalar>& p, ScalarType dtype) {
  set_norm(outs, kName, self, order(p), {}, false, dtype);
}
void norm_ScalarOpt_dtype_cpu(Outputs& outs, const Tensor& self, const std::optional<Scalar>& p, ScalarType dtype) {
  vector_norm(outs[0], self, order(p), mask_of(self, OptionalIntArrayRef()), dtype);
}
void norm_ScalarOpt_dim_meta(Outputs& outs, const Tensor& self, const std::optional<Scalar>& p, IntArrayRef dim,
                             bool keepdim) {
  set_norm(outs, kName, self, order(p), dim, keepdim, {});
}
void norm_ScalarOpt_dim_cpu(Outputs& outs, const Tensor& self, const std::optional<Scalar>& p, IntArrayRef dim, bool) {
  vector_norm(outs[0], self, order(p), mask_of(self, OptionalIntArrayRef(dim)), {});
}
void norm_ScalarOpt_dim_dtype_meta(Outputs& outs, const Tensor& self, const std::optional<Scalar>& p, IntArrayRef dim,
                                   bool keepdim, ScalarType dtype) {
  set_norm(outs, kName, self, order(p), dim, keepdim, dtype);
}
void norm_ScalarOpt_dim_dtype_cpu(Outputs& outs, const Tensor& self, const std::optional<Scalar>& p, IntArrayRef dim,
                                  bool, ScalarType dtype) {
  vector_norm(outs[0], self, order(p), mask_of(self, OptionalIntArrayRef(dim)), dtype);
}

}  // namespace slots
}  // namespace tn
