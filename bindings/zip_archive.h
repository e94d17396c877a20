// Zip archives as torch.save writes them: stored only, data aligned by a padded extra field, zip64 where needed.
//
// Our own code instead of a zip library: nothing is ever compressed, and what torch.load(mmap=True) needs (where a
// record's bytes begin, known before they are written) is what libraries hide.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tn::zip {

uint32_t crc32(uint32_t crc, const void* data, size_t n);

struct Entry {
  std::string name;  // with the archive's folder
  uint64_t header_offset = 0;
  uint64_t size = 0;
  uint32_t crc = 0;
  uint16_t method = 0;
};

// Extra bytes of a local header so that the data behind it is aligned; 4 of them are the field's own header.
size_t padding(uint64_t header_offset, size_t name_size, uint64_t size, uint64_t alignment);

class Writer {
 public:
  using Sink = std::function<void(const void*, size_t)>;
  Writer(Sink sink, bool checksums, uint64_t alignment)
      : sink_(std::move(sink)), checksums_(checksums), alignment_(alignment) {}
  // Null data: zeros, to be filled in by somebody else.
  void add(std::string name, const void* data, uint64_t size);
  void finish();
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  void put(const void* data, size_t n);
  void put(const std::string& bytes) { put(bytes.data(), bytes.size()); }

  Sink sink_;
  bool checksums_;
  uint64_t alignment_;
  uint64_t position_ = 0;
  std::vector<Entry> entries_;
};

class Reader {
 public:
  using Source = std::function<void(uint64_t offset, void* to, size_t n)>;
  Reader(Source source, uint64_t size);
  const Entry* find(std::string_view name) const;
  const std::vector<Entry>& entries() const { return entries_; }
  uint64_t data_offset(const Entry& e) const;
  // Checks the checksum, unless the writer left it out.
  void read(const Entry& e, void* to) const;

 private:
  Source source_;
  uint64_t size_;
  std::vector<Entry> entries_;
};

}  // namespace tn::zip
