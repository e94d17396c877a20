// Tests over dimensions: any, all, and how many are not zero.
#include <cstring>

#include "generated/slots/reduce.h"
#include "kernels/reduce/load.h"

namespace tn {
namespace {

using namespace reduce;

// Truth values are bytes of 0 and 1.
template <class S, class T>
void load_truth(const char* from, int64_t stride, T* to, int64_t n) {
  if (stride == sizeof(S)) {
    const S* p = reinterpret_cast<const S*>(from);
    for (int64_t i = 0; i < n; ++i) to[i] = convert<bool>(p[i]);
    return;
  }
  for (int64_t i = 0; i < n; ++i) to[i] = convert<bool>(*reinterpret_cast<const S*>(from + i * stride));
}

template <bool kAll>
uint8_t test_row(const uint8_t* p, int64_t n) {
  int64_t i = 0;
  for (; i + 64 <= n; i += 64) {
    uint64_t words[8], some = 0, every = ~uint64_t{0};
    std::memcpy(words, p + i, 64);
    for (uint64_t w : words) {
      some |= w;
      every &= w;
    }
    if (kAll ? every != 0x0101010101010101 : some != 0) return !kAll;
  }
  for (; i < n; ++i)
    if ((p[i] != 0) != kAll) return !kAll;
  return kAll;
}
// Eight columns at a time.
template <bool kAll>
void test_columns(const uint8_t* p, int64_t stride, int64_t rows, int64_t cols, uint8_t* acc) {
  for (int64_t i = 0; i < rows; ++i, p += stride) {
    int64_t j = 0;
    for (; j + 8 <= cols; j += 8) {
      uint64_t a, b;
      std::memcpy(&a, acc + j, 8);
      std::memcpy(&b, p + j, 8);
      a = kAll ? a & b : a | b;
      std::memcpy(acc + j, &a, 8);
    }
    for (; j < cols; ++j) acc[j] = static_cast<uint8_t>(kAll ? acc[j] & p[j] : acc[j] | p[j]);
  }
}
constexpr Operation<uint8_t> kAny = {0, test_row<false>, test_columns<false>,
                                     [](uint8_t a, uint8_t b) -> uint8_t { return a | b; }, test_columns<false>};
constexpr Operation<uint8_t> kEvery = {1, test_row<true>, test_columns<true>,
                                       [](uint8_t a, uint8_t b) -> uint8_t { return a & b; }, test_columns<true>};

void test(const Tensor& out, const Tensor& self, uint64_t mask, bool all) {
  visit(self.dtype(), [&]<class S>() {
    // A result of uint8 has the same bytes as one of bool.
    reduce_into<S, uint8_t>(out, self, mask, all ? kEvery : kAny, store_as<uint8_t, uint8_t>, 0, load_truth<S, uint8_t>,
                            std::is_same_v<S, bool>);
  });
}

struct Count {
  int64_t operator()(int64_t a, int64_t b) const { return a + b; }
};
constexpr Operation<int64_t> kCount = {
    0, [](const int64_t* p, int64_t n) { return Plain<int64_t, Count>::row(p, n, 0); }, Plain<int64_t, Count>::columns,
    [](int64_t a, int64_t b) { return a + b; }, Plain<int64_t, Count>::columns};
void count(const Tensor& out, const Tensor& self, uint64_t mask) {
  visit(self.dtype(), [&]<class S>() {
    reduce_into<S, int64_t>(out, self, mask, kCount, store_as<int64_t, int64_t>, 0, load_truth<S, int64_t>, false);
  });
}

// uint8 is upstream's old bool: it answers in kind.
void set_test(Outputs& outs, const Tensor& self, uint64_t mask, bool keepdim) {
  outs.set(0, reduced_sizes(self.sizes(), mask, keepdim),
           self.dtype() == ScalarType::Byte ? ScalarType::Byte : ScalarType::Bool, self.device());
}
uint64_t everything(const Tensor& self) { return dim_mask(std::nullopt, self.dim()); }
// Here an empty list reduces nothing.
uint64_t listed(const Tensor& self, OptionalIntArrayRef dim) { return dim_mask(dim, self.dim(), false); }

}  // namespace

namespace slots {

void any_meta(Outputs& outs, const Tensor& self) { set_test(outs, self, everything(self), false); }
void any_cpu(Outputs& outs, const Tensor& self) { test(outs[0], self, everything(self), false); }
void any_dim_meta(Outputs& outs, const Tensor& self, int64_t dim, bool keepdim) {
  set_test(outs, self, mask_of(self, dim), keepdim);
}
void any_dim_cpu(Outputs& outs, const Tensor& self, int64_t dim, bool) {
  test(outs[0], self, mask_of(self, dim), false);
}
void any_dims_meta(Outputs& outs, const Tensor& self, OptionalIntArrayRef dim, bool keepdim) {
  set_test(outs, self, listed(self, dim), keepdim);
}
void any_dims_cpu(Outputs& outs, const Tensor& self, OptionalIntArrayRef dim, bool) {
  test(outs[0], self, listed(self, dim), false);
}
void all_meta(Outputs& outs, const Tensor& self) { set_test(outs, self, everything(self), false); }
void all_cpu(Outputs& outs, const Tensor& self) { test(outs[0], self, everything(self), true); }
void all_dim_meta(Outputs& outs, const Tensor& self, int64_t dim, bool keepdim) {
  set_test(outs, self, mask_of(self, dim), keepdim);
}
void all_dim_cpu(Outputs& outs, const Tensor& self, int64_t dim, bool) {
  test(outs[0], self, mask_of(self, dim), true);
}
void all_dims_meta(Outputs& outs, const Tensor& self, OptionalIntArrayRef dim, bool keepdim) {
  set_test(outs, self, listed(self, dim), keepdim);
}
void all_dims_cpu(Outputs& outs, const Tensor& self, OptionalIntArrayRef dim, bool) {
  test(outs[0], self, listed(self, dim), true);
}
void _is_all_true_meta(Outputs& outs, const Tensor& self) { set_test(outs, self, everything(self), false); }
void _is_all_true_cpu(Outputs& outs, const Tensor& self) { test(outs[0], self, everything(self), true); }
void _is_any_true_meta(Outputs& outs, const Tensor& self) { set_test(outs, self, everything(self), false); }
void _is_any_true_cpu(Outputs& outs, const Tensor& self) { test(outs[0], self, everything(self), false); }

void count_nonzero_meta(Outputs& outs, const Tensor& self, std::optional<int64_t> dim) {
  outs.set(0, reduced_sizes(self.sizes(), mask_of(self, dim), false), ScalarType::Long, self.device());
}
void count_nonzero_cpu(Outputs& outs, const Tensor& self, std::optional<int64_t> dim) {
  count(outs[0], self, mask_of(self, dim));
}
void count_nonzero_dim_IntList_meta(Outputs& outs, const Tensor& self, IntArrayRef dim) {
  outs.set(0, reduced_sizes(self.sizes(), mask_of(self, OptionalIntArrayRef(dim)), false), ScalarType::Long,
           self.device());
}
void count_nonzero_dim_IntList_cpu(Outputs& outs, const Tensor& self, IntArrayRef dim) {
  count(outs[0], self, mask_of(self, OptionalIntArrayRef(dim)));
}

}  // namespace slots
}  // namespace tn
