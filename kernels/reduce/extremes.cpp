// Largest and smallest values. NaN wins.
#include <algorithm>
#include <limits>

#include "generated/slots/reduce.h"
#include "kernels/reduce/floats.h"
#include "kernels/reduce/ints.h"
#include "kernels/reduce/load.h"
#include "runtime/error.h"

namespace tn {
namespace {

using namespace reduce;

struct LargerInt {
  int64_t operator()(int64_t a, int64_t b) const { return a > b ? a : b; }
};
struct SmallerInt {
  int64_t operator()(int64_t a, int64_t b) const { return a < b ? a : b; }
};
constexpr int64_t kLowest = std::numeric_limits<int64_t>::min(), kHighest = std::numeric_limits<int64_t>::max();
constexpr Operation<int64_t> kMaxInt = {kLowest, largest_in_row, Plain<int64_t, LargerInt>::columns,
                                        [](int64_t a, int64_t b) { return a > b ? a : b; },
                                        Plain<int64_t, LargerInt>::columns};
constexpr Operation<int64_t> kMinInt = {kHighest, smallest_in_row, Plain<int64_t, SmallerInt>::columns,
                                        [](int64_t a, int64_t b) { return a < b ? a : b; },
                                        Plain<int64_t, SmallerInt>::columns};

void extreme(const Tensor& out, const Tensor& self, uint64_t mask, bool largest) {
  visit(self.dtype(), [&]<class S>() {
    using T = ComputeType<S>;
    if constexpr (std::is_floating_point_v<T>)
      reduce_into<S, T>(out, self, mask, float_operation<T>(largest ? Kind::Max : Kind::Min), store_as<S, T>);
    else if constexpr (std::is_same_v<T, int64_t>)
      reduce_into<S, T>(out, self, mask, largest ? kMaxInt : kMinInt, store_as<S, T>);
  });
}

constexpr const char* kNoDim =
    "(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' "
    "argument.";

void check_dim(const char* name, const Tensor& self, int64_t dim) {
  if (self.dim() == 0) {
    TN_CHECK_AS(Index, dim == 0 || dim == -1, name, "(): Expected reduction dim -1 or 0 for scalar but got ", dim);
  } else {
    TN_CHECK_AS(Index, self.size(dim) != 0, name, "(): Expected reduction dim ", dim, " to have non-zero size.");
  }
}
void set_extreme(Outputs& outs, const char* name, const Tensor& self, IntArrayRef dim, bool keepdim) {
  if (self.numel() == 0) {
    TN_CHECK(!dim.empty(), name, kNoDim);
    for (int64_t d : dim) check_dim(name, self, d);
  }
  outs.set(0, reduced_sizes(self.sizes(), mask_of(self, OptionalIntArrayRef(dim)), keepdim), self.dtype(),
           self.device());
}
void set_whole(Outputs& outs, const char* name, const Tensor& self) {
  TN_CHECK(self.numel() > 0, name, kNoDim);
  outs.set(0, {}, self.dtype(), self.device());
}
uint64_t everything(const Tensor& self) { return dim_mask(std::nullopt, self.dim()); }

}  // namespace

namespace slots {

void amax_meta(Outputs& outs, const Tensor& self, IntArrayRef dim, bool keepdim) {
  set_extreme(outs, "amax", self, dim, keepdim);
}
void amax_cpu(Outputs& outs, const Tensor& self, IntArrayRef dim, bool) {
  extreme(outs[0], self, mask_of(self, OptionalIntArrayRef(dim)), true);
}
void amin_meta(Outputs& outs, const Tensor& self, IntArrayRef dim, bool keepdim) {
  set_extreme(outs, "amin", self, dim, keepdim);
}
void amin_cpu(Outputs& outs, const Tensor& self, IntArrayRef dim, bool) {
  extreme(outs[0], self, mask_of(self, OptionalIntArrayRef(dim)), false);
}

void aminmax_meta(Outputs& outs, const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  if (dim && self.dim() > 0) {
    const int64_t d = wrap_dim(*dim, self.dim());
    TN_CHECK_AS(Index, self->size(d) != 0, "aminmax: Expected reduction dim ", d, " to have non-zero size.");
  } else {
    TN_CHECK(self.numel() > 0,
             "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.");
  }
  const DimVector sizes = reduced_sizes(self.sizes(), mask_of(self, dim), keepdim);
  outs.set(0, sizes, self.dtype(), self.device());
  outs.set(1, sizes, self.dtype(), self.device());
}
void aminmax_cpu(Outputs& outs, const Tensor& self, std::optional<int64_t> dim, bool) {
  extreme(outs[0], self, mask_of(self, dim), false);
  extreme(outs[1], self, mask_of(self, dim), true);
}

void max_meta(Outputs& outs, const Tensor& self) { set_whole(outs, "max", self); }
void max_cpu(Outputs& outs, const Tensor& self) { extreme(outs[0], self, everything(self), true); }
void min_meta(Outputs& outs, const Tensor& self) { set_whole(outs, "min", self); }
void min_cpu(Outputs& outs, const Tensor& self) { extreme(outs[0], self, everything(self), false); }

}  // namespace slots
}  // namespace tn
