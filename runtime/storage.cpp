#include "runtime/storage.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "runtime/error.h"

namespace tn {

constinit StorageHook storage_pyobj_hook = nullptr;

namespace {

// Inline data starts at the second cache line pair of the block: the header takes at most 128 bytes.
constexpr size_t kInlineOffset = 128;
static_assert(sizeof(StorageImpl) <= kInlineOffset);

constexpr size_t inline_room(memory::Small kind) {
  return kind == memory::Small::Header ? 0 : memory::kSmallBytes[static_cast<int>(kind)] - kInlineOffset;
}
// The smallest block for data of a size; headers alone share the smaller data block's list.
constexpr memory::Small block_for(size_t nbytes) {
  return nbytes > 64 && nbytes <= 256 ? memory::Small::Data256 : memory::Small::Data64;
}
static_assert(inline_room(memory::Small::Data64) == 64 && inline_room(memory::Small::Data256) == 256);

}  // namespace

Storage Storage::allocate(size_t nbytes, Device device) {
  const memory::Small kind = block_for(nbytes);
  StorageImpl* s = new (memory::take_small(kind)) StorageImpl(kind);
  Storage storage(Ref<StorageImpl>::adopt(s));  // owns the header if the data can't be had
  s->device_ = device;
  if (nbytes == 0 || device.is_meta()) {
    s->nbytes_ = nbytes;
  } else if (nbytes <= 256) {
    s->data_ = reinterpret_cast<char*>(s) + kInlineOffset;
    s->nbytes_ = nbytes;
    s->capacity_ = inline_room(kind);
    s->inline_data_ = true;
  } else {
    s->data_ = memory::take_block(nbytes, &s->capacity_);
    s->nbytes_ = nbytes;
  }
  return storage;
}

Storage Storage::allocate_zeroed(size_t nbytes) {
  if (nbytes < memory::kLargeBlock) {
    Storage storage = allocate(nbytes);
    if (nbytes > 0) std::memset(storage->data(), 0, nbytes);
    return storage;
  }
  // Fresh mapped blocks are zero already.
  StorageImpl* s = new (memory::take_small(memory::Small::Data64)) StorageImpl(memory::Small::Data64);
  Storage storage(Ref<StorageImpl>::adopt(s));
  s->data_ = memory::take_block(nbytes, &s->capacity_, true);
  s->nbytes_ = nbytes;
  return storage;
}

Storage Storage::borrow(void* data, size_t nbytes, ReleaseFn release, void* context, Device device) {
  StorageImpl* s = new (memory::take_small(memory::Small::Data64)) StorageImpl(memory::Small::Data64);
  s->data_ = data;
  s->nbytes_ = nbytes;  // capacity stays 0: the memory isn't ours
  s->release_ = release;
  s->context_ = context;
  s->device_ = device;
  s->resizable_ = false;
  return Storage(Ref<StorageImpl>::adopt(s));
}

void StorageImpl::release_data() noexcept {
  if (release_) release_(context_);
  else if (data_ && !inline_data_ && capacity_ > 0) memory::give_block(data_, capacity_);
  data_ = nullptr;
  capacity_ = 0;
  release_ = nullptr;
  context_ = nullptr;
  inline_data_ = false;
}

void StorageImpl::destroy(StorageImpl* s) noexcept {
  if (__builtin_expect(s->pyobj != nullptr && storage_pyobj_hook != nullptr, 0)) storage_pyobj_hook(*s);
  if (!s->inline_data_) s->release_data();
  const memory::Small kind = s->block_kind_;
  s->~StorageImpl();
  memory::give_small(s, kind);
}

void StorageImpl::resize(size_t nbytes) {
  TN_CHECK(resizable_, "Trying to resize storage that is not resizable");
  if (device_.is_meta()) {
    nbytes_ = nbytes;
    return;
  }
  if (nbytes <= capacity_ && data_ != nullptr && (inline_data_ || nbytes * 2 >= capacity_)) {
    nbytes_ = nbytes;
    return;
  }
  size_t capacity = 0;
  void* data = nbytes == 0 ? nullptr : memory::take_block(nbytes, &capacity);
  if (data && data_) std::memcpy(data, data_, std::min(nbytes, nbytes_));
  release_data();
  data_ = data;
  capacity_ = capacity;
  nbytes_ = nbytes;
}

void StorageImpl::move_out() {
  if (!inline_data_) return;
  size_t capacity = 0;
  void* data = memory::take_block(nbytes_, &capacity);
  std::memcpy(data, data_, nbytes_);
  data_ = data;
  capacity_ = capacity;
  inline_data_ = false;
}

void StorageImpl::swap_contents(StorageImpl& other) {
  move_out();
  other.move_out();
  std::swap(data_, other.data_);
  std::swap(nbytes_, other.nbytes_);
  std::swap(capacity_, other.capacity_);
  std::swap(release_, other.release_);
  std::swap(context_, other.context_);
  std::swap(device_, other.device_);
  std::swap(resizable_, other.resizable_);
  std::swap(no_data_reason, other.no_data_reason);
}

}  // namespace tn
