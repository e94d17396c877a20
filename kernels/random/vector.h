// The vector inner loops of the random fills. Each gives the same bits on every instruction set.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tn::rng {

// out[i] = the low 24 bits of bits[i] as a fraction, times (to - from), plus from, rounded once (fused, as
// upstream's compiler makes it); a result that rounds up to `to` becomes `from`.
void uniform_f32(const uint32_t* bits, float* out, size_t n, float from, float to);
// The same from 64 bits, given as pairs with the high half first, of which the low 53 make the fraction.
void uniform_f64(const uint32_t* bits, double* out, size_t n, double from, double to);

// Box-Muller in place on 16 * groups uniforms of [0, 1): of each group of 16, the first eight give the radii,
// the others the angles.
void normal_groups_f32(float* data, size_t groups, float mean, float std);

}  // namespace tn::rng
