// One attention call, taken apart for the kernels: sizes, strides and the rules that both directions share.
#pragma once
#include <algorithm>
#include <limits>
#include <optional>
#include <type_traits>

#include "kernels/matmul/gemm.h"
#include "runtime/copy.h"
#include "runtime/tensor.h"

namespace tn::attention {

// Sizes after the checks. Query and key heads may differ: `group` query heads in a row share one key head.
struct Problem {
  int64_t batch, heads, kv_heads, group, q_len, kv_len, head_size;
  double scale;
  bool causal;
  ScalarType dtype;  // of the operands
  ScalarType wide;   // of sums: Double for Double, else Float
  Tensor mask;       // undefined, or expanded to [batch, heads, q_len, kv_len]

  // How many keys a query at the position may see.
  int64_t visible(int64_t position) const { return causal ? std::min(position + 1, kv_len) : kv_len; }
};

// Checks with upstream's messages. A bool mask is taken only if `any_mask`: the operator itself refuses it, as
// upstream's.
Problem make_problem(const Tensor& q, const Tensor& k, const Tensor& v, double dropout_p, bool causal,
                     OptionalTensor mask, std::optional<double> scale, bool any_mask);

// The output, in q's order of dimensions, and the logarithms of the rows' sums, [batch, heads, q_len].
struct Forward {
  Tensor out, logsumexp;
};
Forward run_forward(const Problem& p, const Tensor& q, const Tensor& k, const Tensor& v);

// Address of an element of a tensor of four dimensions, whose first two are given.
inline char* head_of(const Tensor& t, int64_t b, int64_t h) {
  return static_cast<char*>(t->raw_data()) + (b * t->stride(0) + h * t->stride(1)) * static_cast<int64_t>(t.itemsize());
}

// Rows [row, row + count) of a head, as float or double in dense rows of head_size.
template <class T>
void gather_rows(const Tensor& t, int64_t b, int64_t h, int64_t row, int64_t count, T* to) {
  const auto item = static_cast<int64_t>(t.itemsize());
  const ScalarType wide = std::is_same_v<T, double> ? ScalarType::Double : ScalarType::Float;
  const int64_t n = t->size(3);
  if (t->stride(3) == 1 && t->stride(2) == n) {
    convert_row(t.dtype(), head_of(t, b, h) + row * n * item, item, wide, reinterpret_cast<char*>(to), sizeof(T),
                count * n);
    return;
  }
  for (int64_t i = 0; i < count; ++i)
    convert_row(t.dtype(), head_of(t, b, h) + (row + i) * t->stride(2) * item, t->stride(3) * item, wide,
                reinterpret_cast<char*>(to + i * n), sizeof(T), n);
}
template <class T>
void scatter_rows(const T* from, const Tensor& t, int64_t b, int64_t h, int64_t row, int64_t count) {
  const auto item = static_cast<int64_t>(t.itemsize());
  const ScalarType wide = std::is_same_v<T, double> ? ScalarType::Double : ScalarType::Float;
  const int64_t n = t->size(3);
  for (int64_t i = 0; i < count; ++i)
    convert_row(wide, reinterpret_cast<const char*>(from + i * n), sizeof(T), t.dtype(),
                head_of(t, b, h) + (row + i) * t->stride(2) * item, t->stride(3) * item, n);
}

// A block of keys or values for gemm: in place if the dtype is T already, else converted into `room`.
template <class T>
struct Block {
  const T* data;
  int64_t row, col;
};
template <class T>
Block<T> block_of(const Problem& p, const Tensor& t, int64_t b, int64_t h, int64_t row, int64_t count, T* room) {
  if (p.dtype == p.wide)
    return {reinterpret_cast<const T*>(head_of(t, b, h)) + row * t->stride(2), t->stride(2), t->stride(3)};
  gather_rows(t, b, h, row, count, room);
  return {room, p.head_size, 1};
}

// The mask of one query for keys [from, from + n) as T; null without a mask. `room` holds it if it must be converted.
template <class T>
const T* mask_row(const Problem& p, int64_t b, int64_t h, int64_t position, int64_t from, int64_t n, T* room) {
  if (!p.mask.defined()) return nullptr;
  const auto item = static_cast<int64_t>(p.mask.itemsize());
  const char* const at = head_of(p.mask, b, h) + (position * p.mask->stride(2) + from * p.mask->stride(3)) * item;
  if (p.mask.dtype() == p.wide && p.mask->stride(3) == 1) return reinterpret_cast<const T*>(at);
  if (p.mask.dtype() == ScalarType::Bool) {
    for (int64_t i = 0; i < n; ++i)
      room[i] = at[i * p.mask->stride(3)] != 0 ? T(0) : -std::numeric_limits<T>::infinity();
    return room;
  }
  convert_row(p.mask.dtype(), at, p.mask->stride(3) * item, p.wide, reinterpret_cast<char*>(room), sizeof(T), n);
  return room;
}

template <class T>
inline constexpr ScalarType kWide = std::is_same_v<T, double> ? ScalarType::Double : ScalarType::Float;

// Memory for a task: 64-byte aligned parts of one block.
template <class T>
class Room {
 public:
  explicit Room(int64_t elements)
      : block_(empty(IntView(&elements, 1), kWide<T>)), next_(static_cast<T*>(block_->raw_data())) {}
  static int64_t padded(int64_t n) { return (n + 15) / 16 * 16; }
  T* take(int64_t n) {
    T* const part = next_;
    next_ += padded(n);
    return part;
  }

 private:
  Tensor block_;
  T* next_;
};

}  // namespace tn::attention
