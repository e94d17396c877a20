// Untyped memory that tensors share: 64-byte aligned, counted, resizable, or borrowed from an owner elsewhere.
#pragma once
#include <cstddef>
#include <cstdint>

#include "runtime/device.h"
#include "runtime/intrusive.h"
#include "runtime/memory.h"

namespace tn {

inline constexpr size_t kAlignment = 64;

class StorageImpl;
// Set by the bindings: called for a dying storage whose pyobj is set.
using StorageHook = void (*)(StorageImpl& storage) noexcept;
extern constinit StorageHook storage_pyobj_hook;

// Releases borrowed memory: called once with the context given to Storage::borrow.
using ReleaseFn = void (*)(void* context);

// Counted, no virtuals. Freed blocks of large storages go to a bounded cache (memory.h).
class StorageImpl : public RefCounted {
 public:
  void* data() const noexcept { return data_; }
  size_t nbytes() const noexcept { return nbytes_; }
  Device device() const noexcept { return device_; }
  bool resizable() const noexcept { return resizable_; }
  void set_resizable(bool on) noexcept { resizable_ = on; }

  // Reallocates, keeping the first bytes. RuntimeError when borrowed.
  void resize(size_t nbytes);
  // Exchanges memory with another storage, e.g. after moving to shared memory. Inline data moves to the heap first.
  void swap_contents(StorageImpl& other);

  // Python's object for this storage, or null. Owned by the bindings; see bindings/tensor.h for who keeps whom alive.
  void* pyobj = nullptr;
  // Why the data pointer must not be read (wrapper subclasses, fake tensors); null when it may.
  const char* no_data_reason = nullptr;

  static void destroy(StorageImpl* s) noexcept;

 private:
  friend class Storage;
  explicit StorageImpl(memory::Small kind) : block_kind_(kind) {}
  ~StorageImpl() = default;

  void* data_ = nullptr;
  size_t nbytes_ = 0;
  size_t capacity_ = 0;  // bytes that are ours; 0 for borrowed memory
  ReleaseFn release_ = nullptr;
  void* context_ = nullptr;
  Device device_;
  bool resizable_ = true;
  bool inline_data_ = false;  // memory follows this object in the same block
  memory::Small block_kind_;  // what this object's own block is

  void move_out();
  void release_data() noexcept;
};

class Storage {
 public:
  Storage() = default;
  explicit Storage(Ref<StorageImpl> impl) : impl_(std::move(impl)) {}
  // Uninitialised memory. A meta storage has a size and no memory.
  static Storage allocate(size_t nbytes, Device device = {});
  static Storage allocate_zeroed(size_t nbytes);
  static Storage borrow(void* data, size_t nbytes, ReleaseFn release, void* context, Device device = {});

  StorageImpl* get() const noexcept { return impl_.get(); }
  StorageImpl* operator->() const noexcept { return impl_.get(); }
  explicit operator bool() const noexcept { return static_cast<bool>(impl_); }
  friend bool operator==(const Storage&, const Storage&) = default;
  StorageImpl* release() noexcept { return impl_.release(); }

 private:
  Ref<StorageImpl> impl_;
};

}  // namespace tn
