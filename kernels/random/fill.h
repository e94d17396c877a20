// Random fills on raw memory: the numbers, their order and the generator's state afterwards are upstream's,
// bit for bit.
//
// Each function checks its arguments with upstream's messages, does nothing for an empty target, takes the
// generator's mutex for its whole length and raises NotImplementedError for dtypes that upstream's kernel
// lacks.
#pragma once
#include <cstdint>
#include <optional>

#include "runtime/array_ref.h"
#include "runtime/dtype.h"
#include "runtime/rng.h"

namespace tn::rng {

// What is filled; strides in elements. Complex targets come as real ones with a last dimension of two.
struct Target {
  ScalarType dtype;
  void* data;
  IntView sizes;
  IntView strides;
};
// A tensor that parametrises a fill, expanded to the target's sizes.
struct Source {
  ScalarType dtype;
  const void* data;
  IntView strides;
};

void uniform(const Target& out, double from, double to, GeneratorImpl& generator);
// From 16 contiguous elements on, a Box-Muller in groups of 16 (other numbers than below that size).
void normal(const Target& out, double mean, double std, GeneratorImpl& generator);
void log_normal(const Target& out, double mean, double std, GeneratorImpl& generator);
void exponential(const Target& out, double lambda, GeneratorImpl& generator);
void geometric(const Target& out, double p, GeneratorImpl& generator);
void cauchy(const Target& out, double median, double sigma, GeneratorImpl& generator);

// Tensor.random_(): the whole range of an integer dtype, [0, 2^digits] of a float dtype.
void random(const Target& out, GeneratorImpl& generator);
// Tensor.random_(from, to); no `to` means up to the dtype's largest value, included.
void random_from_to(const Target& out, int64_t from, std::optional<int64_t> to, GeneratorImpl& generator);

void bernoulli(const Target& out, double p, GeneratorImpl& generator);
void bernoulli(const Target& out, const Source& p, GeneratorImpl& generator);
void poisson(const Target& out, const Source& rate, GeneratorImpl& generator);
// count and p have the target's dtype.
void binomial(const Target& out, const Source& count, const Source& p, GeneratorImpl& generator);
// Computes in the target's dtype, so a double target of float shapes is what a Dirichlet sample starts from.
void standard_gamma(const Target& out, const Source& shape, GeneratorImpl& generator);

// Upstream's RuntimeError when a permutation of n numbers doesn't fit the dtype.
void check_permutation_fits(int64_t n, ScalarType dtype);
// A permutation of [0, n) into n elements at `stride`.
void randperm(ScalarType dtype, void* data, int64_t n, int64_t stride, GeneratorImpl& generator);

// Indices drawn from `rows` distributions of `categories` weights each (strides in elements), `samples` a row
// into contiguous memory.
struct Weights {
  ScalarType dtype;
  const void* data;
  int64_t rows, categories, row_stride, stride;
};
void multinomial_with_replacement(const Weights& weights, int64_t samples, int64_t* out, GeneratorImpl& generator);
// The largest weights / exponential noise of each row. `noise` is scratch of the weights' dtype and sizes,
// whose strides say in which order it is drawn.
void multinomial_without_replacement(const Weights& weights, int64_t samples, int64_t* out, const Target& noise,
                                     GeneratorImpl& generator);

}  // namespace tn::rng
