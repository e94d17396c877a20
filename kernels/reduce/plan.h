// What a reduction walks over: kept dimensions x reduced dimensions, merged where memory allows it. On the stack, no
// heap.
#pragma once
#include <array>
#include <cstdint>

#include "runtime/shape.h"
#include "runtime/tensor.h"

namespace tn::reduce {

struct Dim {
  int64_t size;
  int64_t in;   // stride of the input, in elements
  int64_t out;  // stride of the result; 0 for reduced dimensions
};

struct Plan {
  // Kept dimensions, last first; with `columns`, the first of them has stride 1 in the input and no reduced one has.
  std::array<Dim, kMaxDims> kept;
  // Reduced dimensions, smallest stride first; there is always one.
  std::array<Dim, kMaxDims> reduced;
  int num_kept = 0;
  int num_reduced = 0;
  int64_t outputs = 1;  // results
  int64_t count = 1;    // elements of the input for each result
  bool columns = false;

  // The input's and the result's offsets (in elements) of result number i.
  void locate(int64_t i, int64_t* in, int64_t* out) const {
    *in = *out = 0;
    for (int d = 0; d < num_kept; ++d) {
      const Dim& k = kept[static_cast<size_t>(d)];
      const int64_t q = i / k.size, at = i - q * k.size;
      *in += at * k.in;
      *out += at * k.out;
      i = q;
    }
  }
};

// The result is contiguous.
void make_plan(const Tensor& self, uint64_t mask, Plan* plan);
// Sizes of the result.
DimVector reduced_sizes(IntView sizes, uint64_t mask, bool keepdim);
// The dims that upstream's reductions mean: absent and empty lists are all.
inline uint64_t mask_of(const Tensor& self, OptionalIntArrayRef dim) { return dim_mask(dim, self.dim()); }
inline uint64_t mask_of(const Tensor& self, int64_t dim) { return uint64_t{1} << wrap_dim(dim, self.dim()); }
inline uint64_t mask_of(const Tensor& self, std::optional<int64_t> dim) {
  return dim ? mask_of(self, *dim) : dim_mask(std::nullopt, self.dim());
}

// Max and min have no value for nothing: upstream's IndexErrors.
void check_not_empty(const char* name, const Tensor& self, uint64_t mask, bool dims_given);

}  // namespace tn::reduce
