#include "bindings/zip_archive.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/error.h"

namespace tn::zip {

namespace {

constexpr uint32_t kLocal = 0x04034b50, kDescriptor = 0x08074b50, kCentral = 0x02014b50, kEnd = 0x06054b50,
                   kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr uint64_t kMax32 = 0xffffffff;
constexpr size_t kLocalSize = 30, kCentralSize = 46, kEndSize = 22, kLocatorSize = 20;
// UTF-8 names, and sizes behind the data instead of before it.
constexpr uint16_t kFlags = 0x0808;

// Eight tables: a byte of eight at once each.
constexpr auto kTables = [] {
  std::array<std::array<uint32_t, 256>, 8> t{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int k = 0; k < 8; ++k) c = c & 1 ? 0xedb88320u ^ (c >> 1) : c >> 1;
    t[0][i] = c;
  }
  for (uint32_t i = 0; i < 256; ++i)
    for (size_t k = 1; k < 8; ++k) t[k][i] = (t[k - 1][i] >> 8) ^ t[0][t[k - 1][i] & 255];
  return t;
}();

// Little-endian fields.
class Fields {
 public:
  Fields& u16(uint64_t v) { return bytes(v, 2); }
  Fields& u32(uint64_t v) { return bytes(v, 4); }
  Fields& u64(uint64_t v) { return bytes(v, 8); }
  Fields& text(std::string_view s) {
    out_.append(s);
    return *this;
  }
  std::string take() { return std::move(out_); }

 private:
  Fields& bytes(uint64_t v, int n) {
    for (int i = 0; i < n; ++i) out_.push_back(static_cast<char>(v >> (8 * i)));
    return *this;
  }
  std::string out_;
};
uint64_t get(const char* at, int n) {
  uint64_t v = 0;
  for (int i = n - 1; i >= 0; --i) v = v << 8 | static_cast<uint8_t>(at[i]);
  return v;
}

// The zip64 field: what doesn't fit in 32 bits.
std::string wide_field(uint64_t size, uint64_t offset) {
  Fields body;
  if (size >= kMax32) body.u64(size).u64(size);
  if (offset >= kMax32) body.u64(offset);
  const std::string b = body.take();
  return b.empty() ? b : Fields().u16(1).u16(b.size()).text(b).take();
}

[[noreturn]] void corrupt(const char* what) {
  fail(ErrorKind::Runtime, "PytorchStreamReader failed reading zip archive: ", what);
}

}  // namespace

uint32_t crc32(uint32_t crc, const void* data, size_t n) {
  const auto* p = static_cast<const uint8_t*>(data);
  uint32_t c = ~crc;
  for (; n >= 8; n -= 8, p += 8) {
    const uint32_t low = c ^ (p[0] | p[1] << 8 | p[2] << 16 | static_cast<uint32_t>(p[3]) << 24);
    c = kTables[7][low & 255] ^ kTables[6][low >> 8 & 255] ^ kTables[5][low >> 16 & 255] ^ kTables[4][low >> 24] ^
        kTables[3][p[4]] ^ kTables[2][p[5]] ^ kTables[1][p[6]] ^ kTables[0][p[7]];
  }
  for (; n > 0; --n, ++p) c = kTables[0][(c ^ *p) & 255] ^ (c >> 8);
  return ~c;
}

size_t padding(uint64_t header_offset, size_t name_size, uint64_t size, uint64_t alignment) {
  const uint64_t start = header_offset + kLocalSize + name_size + wide_field(size, header_offset).size() + 4;
  return static_cast<size_t>((alignment - start % alignment) % alignment) + 4;
}

void Writer::put(const void* data, size_t n) {
  sink_(data, n);
  position_ += n;
}

void Writer::add(std::string name, const void* data, uint64_t size) {
  Entry e{std::move(name), position_, size, 0, 0};
  const size_t pad = padding(position_, e.name.size(), size, alignment_);
  const std::string wide = wide_field(size, position_);
  put(Fields()
          .u32(kLocal)
          .u16(0)
          .u16(kFlags)
          .u16(0)
          .u16(0)
          .u16(0)
          .u32(0)
          .u32(0)
          .u32(0)
          .u16(e.name.size())
          .u16(wide.size() + pad)
          .text(e.name)
          .text(wide)
          .text("FB")
          .u16(pad - 4)
          .text(std::string(pad - 4, 'Z'))
          .take());
  if (data) {
    if (checksums_) e.crc = crc32(0, data, size);
    if (size) put(data, size);
  } else {
    const std::string zeros(std::min<uint64_t>(size, 1 << 20), '\0');
    for (uint64_t left = size; left > 0; left -= std::min<uint64_t>(left, zeros.size()))
      put(zeros.data(), std::min<uint64_t>(left, zeros.size()));
  }
  Fields behind;
  behind.u32(kDescriptor).u32(e.crc);
  if (wide.empty()) behind.u32(size).u32(size);
  else behind.u64(size).u64(size);
  put(behind.take());
  entries_.push_back(std::move(e));
}

void Writer::finish() {
  const uint64_t start = position_;
  for (const Entry& e : entries_) {
    const std::string wide = wide_field(e.size, e.header_offset);
    put(Fields()
            .u32(kCentral)
            .u16(0)
            .u16(0)
            .u16(kFlags)
            .u16(0)
            .u16(0)
            .u16(0)
            .u32(e.crc)
            .u32(std::min(e.size, kMax32))
            .u32(std::min(e.size, kMax32))
            .u16(e.name.size())
            .u16(wide.size())
            .u16(0)
            .u16(0)
            .u16(0)
            .u32(0)
            .u32(std::min(e.header_offset, kMax32))
            .text(e.name)
            .text(wide)
            .take());
  }
  const uint64_t size = position_ - start, count = entries_.size();
  if (count > 0xffff || size >= kMax32 || start >= kMax32) {
    const uint64_t at = position_;
    put(Fields().u32(kEnd64).u64(44).u16(45).u16(45).u32(0).u32(0).u64(count).u64(count).u64(size).u64(start).take());
    put(Fields().u32(kLocator64).u32(0).u64(at).u32(1).take());
  }
  const uint64_t shown = std::min<uint64_t>(count, 0xffff);
  put(Fields()
          .u32(kEnd)
          .u16(0)
          .u16(0)
          .u16(shown)
          .u16(shown)
          .u32(std::min(size, kMax32))
          .u32(std::min(start, kMax32))
          .u16(0)
          .take());
}

Reader::Reader(Source source, uint64_t size) : source_(std::move(source)), size_(size) {
  // The end record is last, but for a comment of up to 64 KB.
  const uint64_t tail_size = std::min<uint64_t>(size, kEndSize + 0xffff);
  std::string tail(tail_size, '\0');
  source_(size - tail_size, tail.data(), tail_size);
  size_t at = std::string::npos;
  for (size_t i = tail_size < kEndSize ? 0 : tail_size - kEndSize + 1; i-- > 0;)
    if (get(tail.data() + i, 4) == kEnd) {
      at = i;
      break;
    }
  if (at == std::string::npos) corrupt("failed finding central directory");
  uint64_t count = get(tail.data() + at + 10, 2), length = get(tail.data() + at + 12, 4),
           start = get(tail.data() + at + 16, 4);
  if (at >= kLocatorSize && get(tail.data() + at - kLocatorSize, 4) == kLocator64) {
    char end[56];
    const uint64_t where = get(tail.data() + at - kLocatorSize + 8, 8);
    if (where > size || size - where < sizeof end) corrupt("failed finding central directory");
    source_(where, end, sizeof end);
    if (get(end, 4) != kEnd64) corrupt("failed finding central directory");
    count = get(end + 32, 8);
    length = get(end + 40, 8);
    start = get(end + 48, 8);
  }
  if (start > size || length > size - start) corrupt("invalid header or archive is corrupted");
  std::string directory(length, '\0');
  source_(start, directory.data(), length);
  size_t pos = 0;
  for (uint64_t i = 0; i < count; ++i) {
    if (directory.size() - pos < kCentralSize || get(directory.data() + pos, 4) != kCentral)
      corrupt("invalid header or archive is corrupted");
    const char* h = directory.data() + pos;
    const size_t name_size = get(h + 28, 2), extra_size = get(h + 30, 2), comment = get(h + 32, 2);
    if (directory.size() - pos - kCentralSize < name_size + extra_size + comment)
      corrupt("invalid header or archive is corrupted");
    uint64_t packed = get(h + 20, 4);
    Entry e{std::string(h + kCentralSize, name_size), get(h + 42, 4), get(h + 24, 4),
            static_cast<uint32_t>(get(h + 16, 4)), static_cast<uint16_t>(get(h + 10, 2))};
    const char* x = h + kCentralSize + name_size;
    for (const char* stop = x + extra_size; stop - x >= 4;) {
      const size_t n = get(x + 2, 2);
      if (static_cast<size_t>(stop - x - 4) < n) break;
      if (get(x, 2) == 1) {
        const char* field = x + 4;
        const char* field_end = field + n;
        for (uint64_t* v : {&e.size, &packed, &e.header_offset})
          if (*v == kMax32 && field_end - field >= 8) {
            *v = get(field, 8);
            field += 8;
          }
      }
      x += 4 + n;
    }
    pos += kCentralSize + name_size + extra_size + comment;
    entries_.push_back(std::move(e));
  }
}

const Entry* Reader::find(std::string_view name) const {
  for (const Entry& e : entries_)
    if (e.name == name) return &e;
  return nullptr;
}

uint64_t Reader::data_offset(const Entry& e) const {
  char h[kLocalSize];
  if (e.header_offset > size_ || size_ - e.header_offset < kLocalSize)
    corrupt("invalid header or archive is corrupted");
  source_(e.header_offset, h, sizeof h);
  if (get(h, 4) != kLocal) corrupt("invalid header or archive is corrupted");
  const uint64_t offset = e.header_offset + kLocalSize + get(h + 26, 2) + get(h + 28, 2);
  if (offset > size_ || size_ - offset < e.size) corrupt("file is truncated");
  return offset;
}

void Reader::read(const Entry& e, void* to) const {
  if (e.method != 0)
    fail(ErrorKind::NotImplemented, "torchnative: torch.load refused: compressed record ", e.name,
         "; reason: only stored records are read");
  source_(data_offset(e), to, e.size);
  if (e.crc != 0 && crc32(0, to, e.size) != e.crc) corrupt("file read failed: checksum mismatch");
}

}  // namespace tn::zip
