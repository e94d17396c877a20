// Storages over mapped files and shared memory, and what is known of a storage's mapping.
#pragma once
#include <cstdint>
#include <string>

#include "runtime/storage.h"

namespace tn::mapped {

struct Mapping {
  void* base = nullptr;
  size_t length = 0;
  int fd = -1;           // kept open for sharing; -1 if not
  std::string name{};    // of the file or of the shared memory object
  bool counted = false;  // the object's first 64 bytes hold its count of users, the last of whom unlinks it
  bool shared = false;   // writes reach the file
};

// The mapping behind a storage's memory, or null for ordinary memory. Valid while the storage holds that memory.
const Mapping* of(const StorageImpl& storage);

// An anonymous shared memory object, known by its file descriptor alone.
Storage create_fd(size_t nbytes);
// Maps another process's object; takes over the descriptor.
Storage open_fd(int fd, size_t nbytes);

// A named, counted object; other processes open it by name.
Storage create_named(size_t nbytes);
Storage open_named(const std::string& name, size_t nbytes);
void change_users(const Mapping& m, int by);

// A file. Private maps are copied on write; shared ones are created and extended as needed. nbytes 0: the whole file.
Storage open_file(const std::string& name, bool shared, size_t nbytes);

// Moves a storage's contents into shared memory, if they aren't there.
const Mapping& share_by_fd(StorageImpl& storage);
const Mapping& share_by_name(StorageImpl& storage);

}  // namespace tn::mapped
