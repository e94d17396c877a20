// Intrusive reference counting: one pointer wide handles, no control block.
#pragma once
#include <atomic>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace tn {

// Base of everything that is shared by count. A new object starts with one reference, owned by whoever adopts it.
class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;

  void retain() const noexcept { count_.fetch_add(1, std::memory_order_relaxed); }
  // True when the last reference went away; the caller then destroys the object.
  [[nodiscard]] bool drop() const noexcept { return count_.fetch_sub(1, std::memory_order_acq_rel) == 1; }
  uint32_t use_count() const noexcept { return count_.load(std::memory_order_acquire); }
  // For weak pointers under a lock: false when the object is already on its way out.
  [[nodiscard]] bool retain_if_alive() const noexcept {
    uint32_t n = count_.load(std::memory_order_relaxed);
    while (n != 0)
      if (count_.compare_exchange_weak(n, n + 1, std::memory_order_acq_rel)) return true;
    return false;
  }
  // For recycling: makes a dead object (count zero) count one again.
  void revive() const noexcept { count_.store(1, std::memory_order_relaxed); }

 protected:
  ~RefCounted() = default;

 private:
  mutable std::atomic<uint32_t> count_{1};
};

// T supplies `static void destroy(T*) noexcept`, called when the last reference goes.
template <class T>
class Ref {
 public:
  Ref() noexcept = default;
  Ref(std::nullptr_t) noexcept {}  // NOLINT: a null handle converts from nullptr, as pointers do
  Ref(const Ref& other) noexcept : ptr_(other.ptr_) {
    if (ptr_) ptr_->retain();
  }
  Ref(Ref&& other) noexcept : ptr_(std::exchange(other.ptr_, nullptr)) {}
  // From a handle of a derived class. Lives under T::destroy, as if it had been made as a T.
  template <class U>
    requires(std::is_convertible_v<U*, T*> && !std::is_same_v<U, T>)
  Ref(Ref<U> other) noexcept : ptr_(other.release()) {}  // NOLINT: as pointers convert
  Ref& operator=(Ref other) noexcept {
    std::swap(ptr_, other.ptr_);
    return *this;
  }
  ~Ref() {
    if (ptr_ && ptr_->drop()) T::destroy(ptr_);
  }

  static Ref adopt(T* owned) noexcept {
    Ref r;
    r.ptr_ = owned;
    return r;
  }
  static Ref share(T* borrowed) noexcept {
    if (borrowed) borrowed->retain();
    return adopt(borrowed);
  }

  T* get() const noexcept { return ptr_; }
  T* release() noexcept { return std::exchange(ptr_, nullptr); }
  T* operator->() const noexcept { return ptr_; }
  T& operator*() const noexcept { return *ptr_; }
  explicit operator bool() const noexcept { return ptr_ != nullptr; }
  friend bool operator==(const Ref& a, const Ref& b) noexcept { return a.ptr_ == b.ptr_; }

 private:
  T* ptr_ = nullptr;
};

template <class T, class... A>
Ref<T> make_ref(A&&... args) {
  return Ref<T>::adopt(new T(std::forward<A>(args)...));
}

}  // namespace tn
