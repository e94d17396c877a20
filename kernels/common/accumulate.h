// The types in which upstream computes and carries sums on a CPU.
#pragma once
#include <complex>
#include <cstdint>
#include <type_traits>

#include "runtime/half.h"

namespace tn {

// The type that an element computes in: 64-bit integers for integers and bool, float for the half precisions.
template <class S>
using ComputeType =
    std::conditional_t<std::is_integral_v<S>, int64_t,
                       std::conditional_t<std::is_same_v<S, Half> || std::is_same_v<S, BFloat16>, float, S>>;

// The type that a running sum is carried in: as above, but double for float, so that long sums stay exact.
template <class S>
using CarryType = std::conditional_t<
    std::is_same_v<S, float>, double,
    std::conditional_t<std::is_same_v<S, std::complex<float>>, std::complex<double>, ComputeType<S>>>;

}  // namespace tn
