// Vector bodies of the reductions of float and double.
#pragma once
#include <cstdint>

#include "kernels/reduce/reduce.h"

namespace tn::reduce {

// Sums have the error of pairwise summation. Max and Min give NaN when there is one.
enum class Kind : uint8_t { Sum, NanSum, SumSquares, SumAbs, Prod, Max, Min, MaxAbs, MinAbs };
inline constexpr int kNumKinds = 9;

template <class T>
Operation<T> float_operation(Kind kind);
template <>
Operation<float> float_operation<float>(Kind kind);
template <>
Operation<double> float_operation<double>(Kind kind);

}  // namespace tn::reduce
