// Padding by reflection and replication in one to three dimensions, and the gradients: each output position has one
// source.
#include <algorithm>
#include <cstring>

#include "generated/slots/index.h"
#include "kernels/common/bytes.h"
#include "kernels/index/numbers.h"
#include "kernels/index/walk.h"
#include "runtime/copy.h"
#include "runtime/threads.h"

namespace tn {
namespace {

struct Pads {
  const char* name;
  bool reflect;
  int64_t dims;  // how many of the last dimensions
};

int64_t left_of(IntView padding, int64_t from_last) { return padding[static_cast<size_t>(2 * from_last)]; }
int64_t right_of(IntView padding, int64_t from_last) { return padding[static_cast<size_t>(2 * from_last + 1)]; }

DimVector padded_sizes(const Pads& p, const Tensor& self, IntView padding) {
  TN_CHECK(padding.ssize() == 2 * p.dims, "padding size is expected to be ", 2 * p.dims, ", but got: ", padding.size());
  const int64_t ndim = self.dim();
  bool valid = ndim == p.dims + 1 || ndim == p.dims + 2;
  for (int64_t d = ndim == p.dims + 2 ? 1 : 0; valid && d < ndim; ++d) valid = self->size(d) != 0;
  TN_CHECK(valid, "Expected ", p.dims + 1, "D or ", p.dims + 2,
           "D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: ",
           self.sizes());
  DimVector sizes(self.sizes());
  std::string have, get;
  bool fits = true;
  for (int64_t k = 0; k < p.dims; ++k) {
    const int64_t d = ndim - 1 - k, size = self->size(d), left = left_of(padding, k), right = right_of(padding, k);
    TN_CHECK(!p.reflect || (left < size && right < size), "Argument #", 4 + 2 * k,
             ": Padding size should be less than the corresponding input dimension, but got: padding (", left, ", ",
             right, ") at dimension ", d, " of input ", self.sizes());
    sizes[static_cast<size_t>(d)] = size + left + right;
    fits &= sizes[static_cast<size_t>(d)] >= 1;
    static constexpr const char* kLetters[] = {"W: ", "H: ", "D: "};
    have = str(kLetters[k], size, have.empty() ? "" : " ", have);
    get = str(kLetters[k], sizes[static_cast<size_t>(d)], get.empty() ? "" : " ", get);
  }
  TN_CHECK(fits, "input (", have, ") is too small. Calculated output ", get);
  return sizes;
}

MemoryFormat result_format(const Pads& p, const Tensor& self) {
  const MemoryFormat f = suggest_memory_format(self);
  return p.dims == 2 || (p.dims == 3 && f == MemoryFormat::ChannelsLast3d) ? f : MemoryFormat::Contiguous;
}

int64_t source_of(const Pads& p, int64_t at, int64_t left, int64_t size) {
  int64_t i = at - left;
  if (!p.reflect) return std::clamp<int64_t>(i, 0, size - 1);
  if (i < 0) i = -i;
  return i >= size ? 2 * (size - 1) - i : i;
}

// Calls f(offset in outer, offset in inner, the inner offsets of the row's elements) for all rows of the padded tensor,
// in row-major order; positions of the dimensions before the padded ones are tasks of their own.
template <class F>
void for_padded(const Pads& p, const Tensor& outer, const Tensor& inner, IntView padding, F&& f) {
  const int64_t ndim = outer.dim(), before = ndim - p.dims;
  std::vector<int64_t> sources[3];
  for (int64_t k = 0; k < p.dims; ++k) {
    const int64_t d = ndim - 1 - k;
    for (int64_t i = 0; i < outer->size(d); ++i)
      sources[k].push_back(source_of(p, i, left_of(padding, k), inner->size(d)) * inner->stride(d));
  }
  index::Walk<2> walk;
  for (int64_t d = 0; d < before; ++d) walk.add(outer->size(d), {outer->stride(d), inner->stride(d)});
  const int64_t height = p.dims > 1 ? outer->size(ndim - 2) : 1, depth = p.dims > 2 ? outer->size(ndim - 3) : 1;
  const int64_t plane = outer->size(ndim - 1) * height * depth;
  parallel_for(0, walk.numel(), std::max<int64_t>(16384 / plane, 1), [&](int64_t begin, int64_t end) {
    walk.run(begin, end, [&](const auto& base) {
      for (int64_t z = 0; z < depth; ++z)
        for (int64_t y = 0; y < height; ++y) {
          int64_t out = base[0], in = base[1];
          if (p.dims > 1) out += y * outer->stride(ndim - 2), in += sources[1][static_cast<size_t>(y)];
          if (p.dims > 2) out += z * outer->stride(ndim - 3), in += sources[2][static_cast<size_t>(z)];
          f(out, in, sources[0]);
        }
    });
  });
}

void pad_meta(const Pads& p, Outputs& outs, const Tensor& self, IntView padding) {
  const DimVector sizes = padded_sizes(p, self, padding);
  outs.set(0, sizes, self.dtype(), self.device(), result_format(p, self));
}
void pad_cpu(const Pads& p, Outputs& outs, const Tensor& self, IntView padding) {
  if (!index::has_arithmetic(self.dtype()) || self.dtype() == ScalarType::Bool) not_implemented(p.name, self.dtype());
  if (outs[0].numel() == 0) return;
  const Tensor from = resolve(self);
  with_bytes(self.itemsize(), [&]<class T>() {
    T* to = outs[0].data<T>();
    const T* source = from.data<T>();
    const int64_t step = outs[0].stride(-1), size = from.size(-1), left = std::max<int64_t>(left_of(padding, 0), 0);
    // The row's middle is a copy.
    const bool copies = step == 1 && from.stride(-1) == 1 && left_of(padding, 0) >= 0 && right_of(padding, 0) >= 0;
    for_padded(p, outs[0], from, padding, [&](int64_t o, int64_t i, const std::vector<int64_t>& columns) {
      const auto width = static_cast<int64_t>(columns.size());
      if (!copies) {
        for (int64_t x = 0; x < width; ++x) to[o + x * step] = source[i + columns[static_cast<size_t>(x)]];
        return;
      }
      for (int64_t x = 0; x < left; ++x) to[o + x] = source[i + columns[static_cast<size_t>(x)]];
      std::memcpy(to + o + left, source + i, static_cast<size_t>(size) * sizeof(T));
      for (int64_t x = left + size; x < width; ++x) to[o + x] = source[i + columns[static_cast<size_t>(x)]];
    });
  });
}
void pad_backward_meta(const Pads& p, Outputs& outs, const Tensor& grad, const Tensor& self, IntView padding) {
  const DimVector sizes = padded_sizes(p, self, padding);
  for (int64_t k = 0; k < p.dims; ++k) {
    static constexpr const char* kNames[] = {"width", "height", "depth"};
    TN_CHECK(grad.dim() == self.dim() && grad.size(-1 - k) == sizes[sizes.size() - 1 - static_cast<size_t>(k)],
             p.dims == 1 && p.reflect ? "grad_output " : "gradOutput ", kNames[k],
             " unexpected. Expected: ", sizes[sizes.size() - 1 - static_cast<size_t>(k)],
             p.dims == 1 && !p.reflect ? " Got: " : ", Got: ", grad.dim() > k ? grad.size(-1 - k) : 0);
  }
  outs.set(0, self.sizes(), self.dtype(), self.device(), result_format(p, self));
}
void pad_backward_cpu(const Pads& p, Outputs& outs, const Tensor& grad_output, const Tensor&, IntView padding) {
  const Tensor& grad_input = outs[0];
  zero(grad_input);
  if (grad_output.numel() == 0) return;
  const Tensor grad = resolve(grad_output);
  index::with_number(p.name, grad.dtype(), [&]<class T>() {
    T* to = grad_input.data<T>();
    const T* from = grad.data<T>();
    const int64_t step = grad.stride(-1);
    for_padded(p, grad, grad_input, padding, [&](int64_t o, int64_t i, const std::vector<int64_t>& columns) {
      for (size_t x = 0; x < columns.size(); ++x) {
        T& target = to[i + columns[x]];
        target = index::plus(target, from[o + static_cast<int64_t>(x) * step]);
      }
    });
  });
}

constexpr Pads kReflect1{"reflection_pad1d", true, 1}, kReflect2{"reflection_pad2d", true, 2},
    kReflect3{"reflection_pad3d", true, 3};
constexpr Pads kReplicate1{"replication_pad1d", false, 1}, kReplicate2{"replication_pad2d", false, 2},
    kReplicate3{"replication_pad3d", false, 3};

}  // namespace

namespace slots {

void reflection_pad1d_meta(Outputs& o, const Tensor& self, IntArrayRef padding) {
  pad_meta(kReflect1, o, self, padding);
}
void reflection_pad1d_cpu(Outputs& o, const Tensor& self, IntArrayRef padding) { pad_cpu(kReflect1, o, self, padding); }
void reflection_pad2d_meta(Outputs& o, const Tensor& self, IntArrayRef padding) {
  pad_meta(kReflect2, o, self, padding);
}
void reflection_pad2d_cpu(Outputs& o, const Tensor& self, IntArrayRef padding) { pad_cpu(kReflect2, o, self, padding); }
void reflection_pad3d_meta(Outputs& o, const Tensor& self, IntArrayRef padding) {
  pad_meta(kReflect3, o, self, padding);
}
void reflection_pad3d_cpu(Outputs& o, const Tensor& self, IntArrayRef padding) { pad_cpu(kReflect3, o, self, padding); }
void replication_pad1d_meta(Outputs& o, const Tensor& self, IntArrayRef padding) {
  pad_meta(kReplicate1, o, self, padding);
}
void replication_pad1d_cpu(Outputs& o, const Tensor& self, IntArrayRef padding) {
  pad_cpu(kReplicate1, o, self, padding);
}
void replication_pad2d_meta(Outputs& o, const Tensor& self, IntArrayRef padding) {
  pad_meta(kReplicate2, o, self, padding);
}
void replication_pad2d_cpu(Outputs& o, const Tensor& self, IntArrayRef padding) {
  pad_cpu(kReplicate2, o, self, padding);
}
void replication_pad3d_meta(Outputs& o, const Tensor& self, IntArrayRef padding) {
  pad_meta(kReplicate3, o, self, padding);
}
void replication_pad3d_cpu(Outputs& o, const Tensor& self, IntArrayRef padding) {
  pad_cpu(kReplicate3, o, self, padding);
}

void reflection_pad1d_backward_meta(Outputs& o, const Tensor& g, const Tensor& self, IntArrayRef p) {
  pad_backward_meta(kReflect1, o, g, self, p);
}
void reflection_pad1d_backward_cpu(Outputs& o, const Tensor& g, const Tensor& self, IntArrayRef p) {
  pad_backward_cpu(kReflect1, o, g, self, p);
}
void reflection_pad2d_backward_meta(Outputs& o, const Tensor& g, const Tensor& self, IntArrayRef p) {
  pad_backward_meta(kReflect2, o, g, self, p);
}
void reflection_pad2d_backward_cpu(Outputs& o, const Tensor& g, const Tensor& self, IntArrayRef p) {
  pad_backward_cpu(kReflect2, o, g, self, p);
}
void reflection_pad3d_backward_meta(Outputs& o, const Tensor& g, const Tensor& self, IntArrayRef p) {
  pad_backward_meta(kReflect3, o, g, self, p);
}
void reflection_pad3d_backward_cpu(Outputs& o, const Tensor& g, const Tensor& self, IntArrayRef p) {
  pad_backward_cpu(kReflect3, o, g, self, p);
}
void replication_pad1d_backward_meta(Outputs& o, const Tensor& g, const Tensor& self, IntArrayRef p) {
  pad_backward_meta(kReplicate1, o, g, self, p);
}
void replication_pad1d_backward_cpu(Outputs& o, const Tensor& g, const Tensor& self, IntArrayRef p) {
  pad_backward_cpu(kReplicate1, o, g, self, p);
}
void replication_pad2d_backward_meta(Outputs& o, const Tensor& g, const Tensor& self, IntArrayRef p) {
  pad_backward_meta(kReplicate2, o, g, self, p);
}
void replication_pad2d_backward_cpu(Outputs& o, const Tensor& g, const Tensor& self, IntArrayRef p) {
  pad_backward_cpu(kReplicate2, o, g, self, p);
}
void replication_pad3d_backward_meta(Outputs& o, const Tensor& g, const Tensor& self, IntArrayRef p) {
  pad_backward_meta(kReplicate3, o, g, self, p);
}
void replication_pad3d_backward_cpu(Outputs& o, const Tensor& g, const Tensor& self, IntArrayRef p) {
  pad_backward_cpu(kReplicate3, o, g, self, p);
}

}  // namespace slots
}  // namespace tn
