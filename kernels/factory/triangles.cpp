// Unit matrices, the triangles of matrices and the indices of triangles.
#include <algorithm>
#include <cstring>

#include "generated/slots/factory.h"
#include "kernels/common/bytes.h"
#include "kernels/common/options.h"
#include "kernels/factory/dense.h"
#include "runtime/convert.h"
#include "runtime/threads.h"

namespace tn {
namespace {

// ---- eye

const Tensor& eye_into(const Tensor& out, int64_t n, int64_t m) {
  TN_CHECK(n >= 0, "n must be greater or equal to 0, got ", n);
  TN_CHECK(m >= 0, "m must be greater or equal to 0, got ", m);
  const int64_t size[] = {n, m};
  sized(out, size);
  if (is_barebones_unsigned(out.dtype())) not_implemented("eye", out.dtype());
  zero(out);
  if (out.is_meta()) return out;
  alignas(16) char one[16];
  store_scalar(1, out.dtype(), one);
  const size_t item = out.itemsize();
  const int64_t step = (out.stride(0) + out.stride(1)) * static_cast<int64_t>(item);
  char* to = out.numel() ? static_cast<char*>(out.data_ptr()) : nullptr;
  for (int64_t i = 0; i < std::min(n, m); ++i) std::memcpy(to + i * step, one, item);
  return out;
}

// ---- triangles of a batch of matrices

void shape_of_triangle(Outputs& outs, const Tensor& self, const char* name) {
  TN_CHECK(self.dim() >= 2, name, ": input tensor must have at least 2 dimensions");
  outs.set(0, self.sizes(), self.dtype(), self.device());
}

// out is dense; self has any strides, or is out.
template <class T, bool kUpper>
void keep_triangle(const Tensor& out, const Tensor& self, int64_t k) {
  const int64_t n = self.size(-2), m = self.size(-1), batch = self.numel() / std::max<int64_t>(n * m, 1);
  const int64_t row_stride = self.stride(-2), column_stride = self.stride(-1), dims = self.dim() - 2;
  const T* from = self.data<T>();
  T* to = out.data<T>();
  parallel_for(0, batch * n, std::max<int64_t>(16384 / std::max<int64_t>(m, 1), 1), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t i = r % n;
      int64_t rest = r / n;
      const T* source = from + i * row_stride;
      for (int64_t d = dims; d-- > 0;) {
        source += rest % self->size(d) * self->stride(d);
        rest /= self->size(d);
      }
      T* row = to + r * m;
      // Columns [first, last) stay.
      const int64_t edge = std::clamp<int64_t>(i + k + (kUpper ? 0 : 1), 0, m);
      const int64_t first = kUpper ? edge : 0, last = kUpper ? m : edge;
      std::fill(row, row + first, T{});
      if (row != source) {
        if (column_stride == 1) std::memcpy(row + first, source + first, static_cast<size_t>(last - first) * sizeof(T));
        else
          for (int64_t j = first; j < last; ++j) row[j] = source[j * column_stride];
      }
      std::fill(row + last, row + m, T{});
    }
  });
}

template <bool kUpper>
void triangle(Outputs& outs, const Tensor& self, int64_t diagonal) {
  const ScalarType t = self.dtype();
  if (is_float8(t) || is_barebones_unsigned(t)) not_implemented(kUpper ? "triu" : "tril", t);
  if (self.numel() == 0) return;
  const Tensor plain = resolve(self);
  with_bytes(plain.itemsize(), [&]<class T>() { keep_triangle<T, kUpper>(outs[0], plain, diagonal); });
}

// ---- indices

int64_t tril_count(int64_t rows, int64_t columns, int64_t offset) {
  if (rows == 0 || columns == 0) return 0;
  int64_t count = 0;
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t in_row = std::clamp<int64_t>(i + offset + 1, 0, columns);
    if (in_row == columns) return count + (rows - i) * columns;
    count += in_row;
  }
  return count;
}

Tensor triangle_indices(const char* name, bool upper, int64_t rows, int64_t columns, int64_t offset,
                        const NewTensor& options) {
  TN_CHECK(rows >= 0, "row must be non-negative, got", rows);
  TN_CHECK(columns >= 0, "col must be non-negative, got", columns);
  TN_CHECK(!options.layout || *options.layout == Layout::Strided, "only support layout=torch.strided, got ",
           layout_name(options.layout.value_or(Layout::Strided)));
  const int64_t size[] = {
      2, upper ? rows * columns - tril_count(rows, columns, offset - 1) : tril_count(rows, columns, offset)};
  Tensor out = options.make(str("aten::", name), size, ScalarType::Long);
  if (out.is_meta()) return out;
  const auto write = [&]<class T>() {
    T* r = out.data<T>();
    T* c = r + size[1];
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t edge = std::clamp<int64_t>(upper ? i + offset : i + offset + 1, 0, columns);
      for (int64_t j = upper ? edge : 0; j < (upper ? columns : edge); ++j) {
        *r++ = static_cast<T>(i);
        *c++ = static_cast<T>(j);
      }
    }
  };
  switch (out.dtype()) {
    case ScalarType::Byte: write.operator()<uint8_t>(); break;
    case ScalarType::Char: write.operator()<int8_t>(); break;
    case ScalarType::Short: write.operator()<int16_t>(); break;
    case ScalarType::Int: write.operator()<int32_t>(); break;
    case ScalarType::Long: write.operator()<int64_t>(); break;
    default: not_implemented(name, out.dtype());
  }
  return out;
}

}  // namespace

void slots::tril_meta(Outputs& outs, const Tensor& self, int64_t) { shape_of_triangle(outs, self, "tril"); }
void slots::tril_cpu(Outputs& outs, const Tensor& self, int64_t diagonal) { triangle<false>(outs, self, diagonal); }
void slots::triu_meta(Outputs& outs, const Tensor& self, int64_t) { shape_of_triangle(outs, self, "triu"); }
void slots::triu_cpu(Outputs& outs, const Tensor& self, int64_t diagonal) { triangle<true>(outs, self, diagonal); }

namespace native {

const Tensor& eye_out(int64_t n, const Tensor& out) { return eye_into(out, n, n); }
const Tensor& eye_m_out(int64_t n, int64_t m, const Tensor& out) { return eye_into(out, n, m); }
Tensor eye_m(int64_t n, int64_t m, std::optional<ScalarType> dtype, std::optional<Layout> layout,
             std::optional<Device> device, std::optional<bool> pin_memory) {
  const NewTensor options{dtype, layout, device, pin_memory};
  const int64_t none[] = {0};
  Tensor out = options.make("aten::eye", none, default_dtype());
  eye_into(out, n, m);
  return out;
}
Tensor eye(int64_t n, std::optional<ScalarType> dtype, std::optional<Layout> layout, std::optional<Device> device,
           std::optional<bool> pin_memory) {
  return eye_m(n, n, dtype, layout, device, pin_memory);
}
Tensor tril_indices(int64_t row, int64_t col, int64_t offset, std::optional<ScalarType> dtype,
                    std::optional<Layout> layout, std::optional<Device> device, std::optional<bool> pin_memory) {
  return triangle_indices("tril_indices", false, row, col, offset, {dtype, layout, device, pin_memory});
}
Tensor triu_indices(int64_t row, int64_t col, int64_t offset, std::optional<ScalarType> dtype,
                    std::optional<Layout> layout, std::optional<Device> device, std::optional<bool> pin_memory) {
  return triangle_indices("triu_indices", true, row, col, offset, {dtype, layout, device, pin_memory});
}

}  // namespace native
}  // namespace tn
