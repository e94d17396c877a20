// Borrowed views of arrays. ArrayRef has upstream's name since generated signatures use it; IntView is its short name.
#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <ostream>
#include <vector>

namespace tn {

template <class T>
class ArrayRef {
 public:
  constexpr ArrayRef() = default;
  constexpr ArrayRef(const T* data, size_t size) : data_(data), size_(size) {}
  ArrayRef(const std::vector<T>& v) : data_(v.data()), size_(v.size()) {}  // NOLINT
  constexpr ArrayRef(const T& one) : data_(&one), size_(1) {}              // NOLINT
  template <size_t N>
  constexpr ArrayRef(const T (&array)[N]) : data_(array), size_(N) {}  // NOLINT
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winit-list-lifetime"
  // Valid until the end of the full expression, which is what a call needs.
  constexpr ArrayRef(const std::initializer_list<T>& list) : data_(list.begin()), size_(list.size()) {}  // NOLINT
#pragma GCC diagnostic pop

  constexpr const T* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr int64_t ssize() const { return static_cast<int64_t>(size_); }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const T& operator[](size_t i) const { return data_[i]; }
  constexpr const T& front() const { return data_[0]; }
  constexpr const T& back() const { return data_[size_ - 1]; }
  constexpr const T* begin() const { return data_; }
  constexpr const T* end() const { return data_ + size_; }
  constexpr ArrayRef slice(size_t from, size_t count) const { return {data_ + from, count}; }
  std::vector<T> vec() const { return std::vector<T>(begin(), end()); }

  friend constexpr bool operator==(ArrayRef a, ArrayRef b) {
    if (a.size_ != b.size_) return false;
    for (size_t i = 0; i < a.size_; ++i)
      if (!(a.data_[i] == b.data_[i])) return false;
    return true;
  }
  // "[2, 3]", as messages print sizes.
  friend std::ostream& operator<<(std::ostream& out, ArrayRef a)
    requires requires(const T& t) { out << t; }
  {
    out << '[';
    for (size_t i = 0; i < a.size_; ++i) out << (i ? ", " : "") << a.data_[i];
    return out << ']';
  }

 private:
  const T* data_ = nullptr;
  size_t size_ = 0;
};

using IntArrayRef = ArrayRef<int64_t>;
using IntView = IntArrayRef;
using OptionalIntArrayRef = std::optional<IntArrayRef>;

}  // namespace tn
