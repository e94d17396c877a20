#include "bindings/mapped_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <random>
#include <unordered_map>

#include "runtime/error.h"

namespace tn::mapped {

namespace {

constexpr size_t kHeader = 64;  // of counted objects; keeps the data aligned

// By address of the data, since a storage's memory can move to another storage.
struct Registry {
  std::mutex mutex;
  std::unordered_map<const void*, std::unique_ptr<Mapping>> by_data;
};
Registry& registry() {
  static Registry* const r = new Registry;  // outlives the last storage
  return *r;
}

std::atomic<int>& users(const Mapping& m) { return *static_cast<std::atomic<int>*>(m.base); }

void release(void* data) {
  std::unique_ptr<Mapping> m;
  {
    const std::scoped_lock lock(registry().mutex);
    const auto found = registry().by_data.find(data);
    m = std::move(found->second);
    registry().by_data.erase(found);
  }
  if (m->counted && users(*m).fetch_sub(1) == 1) ::shm_unlink(m->name.c_str());
  ::munmap(m->base, m->length);
  if (m->fd >= 0) ::close(m->fd);
}

[[noreturn]] void fail_errno(const std::string& what) {
  const int code = errno;
  fail(ErrorKind::Runtime, what, ": ", std::strerror(code), " (", code, ")");
}

// Maps the descriptor and hands it over to a storage of the bytes behind `skip`.
Storage map(int fd, size_t nbytes, size_t skip, bool shared, Mapping m) {
  m.length = nbytes + skip;
  m.base = ::mmap(nullptr, m.length, PROT_READ | PROT_WRITE, shared ? MAP_SHARED : MAP_PRIVATE, fd, 0);
  if (m.base == MAP_FAILED) {
    const int code = errno;
    ::close(fd);
    errno = code;
    fail_errno(str("unable to mmap ", m.length, " bytes from file <", m.name, ">"));
  }
  m.shared = shared;
  if (m.fd < 0) ::close(fd);
  void* data = static_cast<char*>(m.base) + skip;
  if (m.counted) users(m).fetch_add(1);
  {
    const std::scoped_lock lock(registry().mutex);
    registry().by_data.emplace(data, std::make_unique<Mapping>(std::move(m)));
  }
  Storage s = Storage::borrow(data, nbytes, release, data);
  s->set_resizable(false);
  return s;
}

struct NewObject {
  int fd;
  std::string name;
};
NewObject create_object(size_t nbytes) {
  static std::atomic<unsigned> counter{0};
  static const unsigned salt = std::random_device{}();
  for (int attempt = 0;; ++attempt) {
    std::string name = str("/torch_", ::getpid(), '_', salt, '_', counter++);
    const int fd = ::shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, S_IRUSR | S_IWUSR);
    if (fd < 0 && errno == EEXIST && attempt < 16) continue;
    if (fd < 0) fail_errno(str("unable to open shared memory object <", name, "> in read-write mode"));
    if (::ftruncate(fd, static_cast<off_t>(nbytes)) != 0) {
      const int code = errno;
      ::close(fd);
      ::shm_unlink(name.c_str());
      errno = code;
      fail_errno(str("unable to resize file <", name, "> to the right size"));
    }
    return {fd, std::move(name)};
  }
}

void check_length(int fd, const std::string& name, size_t nbytes) {
  struct stat status{};
  if (::fstat(fd, &status) == 0 && static_cast<size_t>(status.st_size) >= nbytes) return;
  ::close(fd);
  fail(ErrorKind::Runtime, "file <", name, "> size <", status.st_size, "> is smaller than the required mapping size <",
       nbytes, ">");
}

const Mapping& move_into(StorageImpl& storage, Storage target) {
  if (storage.nbytes() != 0) std::memcpy(target->data(), storage.data(), storage.nbytes());
  storage.swap_contents(*target.get());
  storage.set_resizable(false);
  return *of(storage);
}

}  // namespace

const Mapping* of(const StorageImpl& storage) {
  if (storage.data() == nullptr) return nullptr;
  const std::scoped_lock lock(registry().mutex);
  const auto found = registry().by_data.find(storage.data());
  return found == registry().by_data.end() ? nullptr : found->second.get();
}

Storage create_fd(size_t nbytes) {
  NewObject o = create_object(nbytes);
  ::shm_unlink(o.name.c_str());
  return map(o.fd, nbytes, 0, true, Mapping{.fd = o.fd, .name = std::move(o.name)});
}
Storage open_fd(int fd, size_t nbytes) {
  check_length(fd, "", nbytes);
  return map(fd, nbytes, 0, true, Mapping{.fd = fd});
}

Storage create_named(size_t nbytes) {
  NewObject o = create_object(nbytes + kHeader);
  return map(o.fd, nbytes, kHeader, true, Mapping{.name = std::move(o.name), .counted = true});
}
Storage open_named(const std::string& name, size_t nbytes) {
  const int fd = ::shm_open(name.c_str(), O_RDWR, 0);
  if (fd < 0) fail_errno(str("unable to open shared memory object <", name, "> in read-write mode"));
  check_length(fd, name, nbytes + kHeader);
  return map(fd, nbytes, kHeader, true, Mapping{.name = name, .counted = true});
}
void change_users(const Mapping& m, int by) {
  if (m.counted) users(m).fetch_add(by);
}

Storage open_file(const std::string& name, bool shared, size_t nbytes) {
  const int fd = ::open(name.c_str(), shared ? O_RDWR | O_CREAT : O_RDONLY, S_IRUSR | S_IWUSR);
  if (fd < 0) fail_errno(str("unable to open file <", name, "> in ", shared ? "read-write" : "read-only", " mode"));
  struct stat status{};
  if (::fstat(fd, &status) != 0) {
    ::close(fd);
    fail(ErrorKind::Runtime, "unable to stat the file <", name, ">");
  }
  if (nbytes == 0) nbytes = static_cast<size_t>(status.st_size);
  if (static_cast<size_t>(status.st_size) < nbytes && shared && ::ftruncate(fd, static_cast<off_t>(nbytes)) != 0) {
    ::close(fd);
    fail(ErrorKind::Runtime, "unable to resize file <", name, "> to the right size");
  }
  check_length(fd, name, nbytes);
  if (nbytes == 0) {
    ::close(fd);
    return Storage::allocate(0);
  }
  return map(fd, nbytes, 0, shared, Mapping{.name = name});
}

const Mapping& share_by_fd(StorageImpl& storage) {
  if (const Mapping* m = of(storage); m && m->fd >= 0) return *m;
  return move_into(storage, create_fd(storage.nbytes()));
}
const Mapping& share_by_name(StorageImpl& storage) {
  if (const Mapping* m = of(storage); m && m->counted) return *m;
  return move_into(storage, create_named(storage.nbytes()));
}

}  // namespace tn::mapped
