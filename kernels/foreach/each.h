// What the operators over lists repeat: element operators and their rows, by the names that foreach.yaml
// uses.
#pragma once
#include "generated/slots/binary.h"
#include "generated/slots/special.h"
#include "generated/slots/ternary.h"
#include "generated/slots/unary.h"
#include "kernels/foreach/foreach.h"
#include "runtime/op_table.h"

namespace tn::foreach {

// Arithmetic: a number stands where a tensor may, as one row of a single value.
inline constexpr Each kAdd{kOp_add_Tensor, kOp_add__Tensor, 2, &slots::add_Tensor, 2};
inline constexpr Each kSub{kOp_sub_Tensor, kOp_sub__Tensor, 2, &slots::sub_Tensor, 2};
inline constexpr Each kMul{kOp_mul_Tensor, kOp_mul__Tensor, 2, &slots::mul_Tensor, 2};
inline constexpr Each kDiv{kOp_div_Tensor, kOp_div__Tensor, 2, &slots::div_Tensor, 2};
inline constexpr Each kAddNumber{kOp_add_Scalar, kOp_add__Scalar, 1, &slots::add_Tensor, 2};
inline constexpr Each kSubNumber{kOp_sub_Scalar, kOp_sub__Scalar, 1, &slots::sub_Tensor, 2};
inline constexpr Each kMulNumber{kOp_mul_Scalar, kOp_mul__Scalar, 1, &slots::mul_Tensor, 2};
inline constexpr Each kDivNumber{kOp_div_Scalar, kOp_div__Scalar, 1, &slots::div_Tensor, 2};
inline constexpr Each kMaximum{kOp_clamp_min_Tensor, kOp_clamp_min__Tensor, 2, &slots::maximum, 2};
inline constexpr Each kMinimum{kOp_clamp_max_Tensor, kOp_clamp_max__Tensor, 2, &slots::minimum, 2};
inline constexpr Each kMaximumNumber{kOp_clamp_min, kOp_clamp_min_, 1, &slots::maximum, 2};
inline constexpr Each kMinimumNumber{kOp_clamp_max, kOp_clamp_max_, 1, &slots::minimum, 2};
inline constexpr Each kAddcmul{kOp_addcmul, kOp_addcmul_, 3, &slots::addcmul, 3};
inline constexpr Each kAddcdiv{kOp_addcdiv, kOp_addcdiv_, 3, &slots::addcdiv, 3};
inline constexpr Each kLerp{kOp_lerp_Tensor, kOp_lerp__Tensor, 3, &slots::lerp_Tensor, 3};
inline constexpr Each kLerpNumber{kOp_lerp_Scalar, kOp_lerp__Scalar, 2, &slots::lerp_Scalar, 2};
inline constexpr Each kPow{kOp_pow_Tensor_Tensor, kOp_pow__Tensor, 2, &slots::pow_Tensor_Tensor, 2};
inline constexpr Each kPowNumber{kOp_pow_Tensor_Scalar, kOp_pow__Scalar, 1, nullptr,
                                 1};  // exponents with ways of their own

// One argument.
inline constexpr Each kAbs{kOp_abs, kOp_abs_, 1, &slots::abs, 1};
inline constexpr Each kAcos{kOp_acos, kOp_acos_, 1, &slots::acos, 1};
inline constexpr Each kAsin{kOp_asin, kOp_asin_, 1, &slots::asin, 1};
inline constexpr Each kAtan{kOp_atan, kOp_atan_, 1, &slots::atan, 1};
inline constexpr Each kCeil{kOp_ceil, kOp_ceil_, 1, &slots::ceil, 1};
inline constexpr Each kCos{kOp_cos, kOp_cos_, 1, &slots::cos, 1};
inline constexpr Each kCosh{kOp_cosh, kOp_cosh_, 1, &slots::cosh, 1};
inline constexpr Each kErf{kOp_erf, kOp_erf_, 1, &slots::erf, 1};
inline constexpr Each kErfc{kOp_erfc, kOp_erfc_, 1, &slots::erfc, 1};
inline constexpr Each kExp{kOp_exp, kOp_exp_, 1, &slots::exp, 1};
inline constexpr Each kExpm1{kOp_expm1, kOp_expm1_, 1, &slots::expm1, 1};
inline constexpr Each kFloor{kOp_floor, kOp_floor_, 1, &slots::floor, 1};
inline constexpr Each kFrac{kOp_frac, kOp_frac_, 1, &slots::frac, 1};
inline constexpr Each kLgamma{kOp_lgamma, kOp_lgamma_, 1, &slots::lgamma, 1};
inline constexpr Each kLog{kOp_log, kOp_log_, 1, &slots::log, 1};
inline constexpr Each kLog10{kOp_log10, kOp_log10_, 1, &slots::log10, 1};
inline constexpr Each kLog1p{kOp_log1p, kOp_log1p_, 1, &slots::log1p, 1};
inline constexpr Each kLog2{kOp_log2, kOp_log2_, 1, &slots::log2, 1};
inline constexpr Each kNeg{kOp_neg, kOp_neg_, 1, &slots::neg, 1};
inline constexpr Each kReciprocal{kOp_reciprocal, kOp_reciprocal_, 1, &slots::reciprocal, 1};
inline constexpr Each kRound{kOp_round, kOp_round_, 1, &slots::round, 1};
inline constexpr Each kRsqrt{kOp_rsqrt, kOp_rsqrt_, 1, &slots::rsqrt, 1};
inline constexpr Each kSigmoid{kOp_sigmoid, kOp_sigmoid_, 1, &slots::sigmoid, 1};
inline constexpr Each kSign{kOp_sign, kOp_sign_, 1, &slots::sign, 1};
inline constexpr Each kSin{kOp_sin, kOp_sin_, 1, &slots::sin, 1};
inline constexpr Each kSinh{kOp_sinh, kOp_sinh_, 1, &slots::sinh, 1};
inline constexpr Each kSqrt{kOp_sqrt, kOp_sqrt_, 1, &slots::sqrt, 1};
inline constexpr Each kTan{kOp_tan, kOp_tan_, 1, &slots::tan, 1};
inline constexpr Each kTanh{kOp_tanh, kOp_tanh_, 1, &slots::tanh, 1};
inline constexpr Each kTrunc{kOp_trunc, kOp_trunc_, 1, &slots::trunc, 1};

}  // namespace tn::foreach
