// Random streams against upstream's, recorded by tests/data/record_rng.py.
#include "runtime/rng.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/random/element.h"
#include "kernels/random/fill.h"
#include "runtime/error.h"

namespace tn {
namespace {

std::string recorded() { return TN_TEST_DATA "/rng_streams.tsv"; }

uint32_t crc32(const uint8_t* bytes, size_t n, uint32_t crc = 0) {
  static const auto table = [] {
    std::array<uint32_t, 256> t;
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t c = i;
      for (int k = 0; k < 8; ++k) c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
      t[i] = c;
    }
    return t;
  }();
  crc = ~crc;
  for (size_t i = 0; i < n; ++i) crc = table[(crc ^ bytes[i]) & 0xff] ^ crc >> 8;
  return ~crc;
}

std::vector<int64_t> integers(const std::string& text) {
  std::vector<int64_t> out;
  if (text == "-") return out;
  std::stringstream in(text);
  for (std::string part; std::getline(in, part, ',');) out.push_back(std::stoll(part));
  return out;
}
std::vector<double> reals(const std::string& text) {
  std::vector<double> out;
  if (text == "-") return out;
  std::stringstream in(text);
  for (std::string part; std::getline(in, part, ',');) out.push_back(std::stod(part));
  return out;
}

ScalarType dtype_of(const std::string& name) {
  static const std::map<std::string, ScalarType> names = {
      {"uint8", ScalarType::Byte},        {"int8", ScalarType::Char},      {"int16", ScalarType::Short},
      {"int32", ScalarType::Int},         {"int64", ScalarType::Long},     {"float16", ScalarType::Half},
      {"float32", ScalarType::Float},     {"float64", ScalarType::Double}, {"bool", ScalarType::Bool},
      {"bfloat16", ScalarType::BFloat16}, {"uint16", ScalarType::UInt16},  {"uint32", ScalarType::UInt32},
      {"uint64", ScalarType::UInt64}};
  return names.at(name);
}

// A strided block of zeros.
struct Block {
  Block(ScalarType t, std::vector<int64_t> sizes_in, std::vector<int64_t> strides_in)
      : dtype(t), sizes(std::move(sizes_in)), strides(std::move(strides_in)) {
    int64_t length = 1;
    for (size_t d = 0; d < sizes.size(); ++d) length += (sizes[d] - 1) * strides[d];
    if (numel() == 0) length = 0;
    bytes.resize(static_cast<size_t>(length) * item_size(t));
  }
  int64_t numel() const {
    int64_t n = 1;
    for (const int64_t s : sizes) n *= s;
    return n;
  }
  // Byte offset of the i-th element in logical order.
  size_t offset(int64_t i) const {
    int64_t at = 0;
    for (size_t d = sizes.size(); d-- > 0; i /= sizes[d]) at += i % sizes[d] * strides[d];
    return static_cast<size_t>(at) * item_size(dtype);
  }
  rng::Target target() { return {dtype, bytes.data(), sizes, strides}; }
  std::vector<uint8_t> logical() const {
    std::vector<uint8_t> out;
    for (int64_t i = 0; i < numel(); ++i) {
      const auto* at = bytes.data() + offset(i);
      out.insert(out.end(), at, at + item_size(dtype));
    }
    return out;
  }
  // The recorder's pattern, times factor, plus `add`, at most `most`.
  void set_pattern(double factor, double add = 0, double most = 1e9) {
    for (int64_t i = 0; i < numel(); ++i) set(i, std::min(static_cast<double>(i * 37 % 101) * factor, most));
    each([=](double v) { return v + add; });
  }
  template <class F>
  void each(F f) {
    for (int64_t i = 0; i < numel(); ++i)
      rng::with_type<rng::kFloats | rng::kReduced>(dtype, [&]<class T>(T) {
        set(i, f(static_cast<double>(rng::to_float(*reinterpret_cast<const T*>(bytes.data() + offset(i))))));
      });
  }
  void set(int64_t i, double v) {
    rng::with_type<rng::kFloats | rng::kReduced>(
        dtype, [&]<class T>(T) { *reinterpret_cast<T*>(bytes.data() + offset(i)) = rng::element<T>(v); });
  }

  ScalarType dtype;
  std::vector<int64_t> sizes, strides;
  std::vector<uint8_t> bytes;
};

std::vector<int64_t> contiguous(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t next = 1;
  for (size_t d = sizes.size(); d-- > 0; next *= std::max<int64_t>(sizes[d], 1)) strides[d] = next;
  return strides;
}

// The recorder's parameter tensor, expanded over every second dimension.
Block half_expanded(ScalarType dtype, const std::vector<int64_t>& sizes, double factor) {
  auto kept = sizes;
  for (size_t d = 1; d < kept.size(); d += 2) kept[d] = 1;
  Block p(dtype, kept, contiguous(kept));
  p.set_pattern(factor, 0, 1.0);
  for (size_t d = 1; d < kept.size(); d += 2)
    if (sizes[d] != 1) p.strides[d] = 0;
  return p;
}

int64_t product(const std::vector<int64_t>& sizes) {
  int64_t n = 1;
  for (const int64_t s : sizes) n *= s;
  return n;
}

struct Row {
  std::string op, p_dtype;
  ScalarType dtype;
  std::vector<int64_t> sizes, strides;
  std::string args, line;
  uint64_t seed;
  uint32_t results, state;
};

bool uses_libm(const Row& row) {
  static const std::set<std::string> made_of_doubles = {
      "log_normal", "exponential", "cauchy", "geometric", "poisson", "binomial", "standard_gamma", "multinomial_once"};
  if (made_of_doubles.count(row.op)) return true;
  // Float normals need no libm only on the path of 16 contiguous elements.
  return row.op == "normal" &&
         (row.dtype == ScalarType::Double || row.strides != contiguous(row.sizes) || product(row.sizes) < 16);
}

std::vector<uint8_t> call(const Row& row, GeneratorImpl& g) {
  Block out(row.dtype, row.sizes, row.strides);
  const auto a = reals(row.args);
  if (row.op == "uniform") rng::uniform(out.target(), a[0], a[1], g);
  else if (row.op == "normal") rng::normal(out.target(), a[0], a[1], g);
  else if (row.op == "log_normal") rng::log_normal(out.target(), a[0], a[1], g);
  else if (row.op == "cauchy") rng::cauchy(out.target(), a[0], a[1], g);
  else if (row.op == "exponential") rng::exponential(out.target(), a[0], g);
  else if (row.op == "geometric") rng::geometric(out.target(), a[0], g);
  else if (row.op == "bernoulli") rng::bernoulli(out.target(), a[0], g);
  else if (row.op == "random") rng::random(out.target(), g);
  else if (row.op == "random_from_to")
    rng::random_from_to(out.target(), integers(row.args)[0], integers(row.args)[1], g);
  else if (row.op == "random_from") rng::random_from_to(out.target(), integers(row.args)[0], std::nullopt, g);
  else if (row.op == "random_full") rng::random_from_to(out.target(), INT64_MIN, std::nullopt, g);
  else if (row.op == "randperm") rng::randperm(row.dtype, out.bytes.data(), out.numel(), row.strides[0], g);
  else if (row.op == "bernoulli_tensor") {
    Block p = half_expanded(dtype_of(row.p_dtype), row.sizes, a[0]);
    rng::bernoulli(out.target(), {p.dtype, p.bytes.data(), p.strides}, g);
  } else if (row.op == "poisson") {
    out.set_pattern(a[0]);
    Block result(row.dtype, row.sizes, contiguous(row.sizes));
    rng::poisson(result.target(), {out.dtype, out.bytes.data(), out.strides}, g);
    return result.logical();
  } else if (row.op == "binomial") {
    out.set_pattern(a[0]);
    out.each([](double v) { return std::floor(v); });
    Block p = half_expanded(row.dtype, row.sizes, 0.01);
    Block result(row.dtype, row.sizes, contiguous(row.sizes));
    rng::binomial(result.target(), {out.dtype, out.bytes.data(), out.strides}, {p.dtype, p.bytes.data(), p.strides}, g);
    return result.logical();
  } else if (row.op == "standard_gamma") {
    out.set_pattern(a[0]);
    Block result(row.dtype, row.sizes, contiguous(row.sizes));
    rng::standard_gamma(result.target(), {out.dtype, out.bytes.data(), out.strides}, g);
    return result.logical();
  } else if (row.op == "multinomial" || row.op == "multinomial_once") {
    out.set_pattern(1.0, 1.0);
    const bool matrix = row.sizes.size() == 2;
    const int64_t rows = matrix ? row.sizes[0] : 1, samples = static_cast<int64_t>(a[0]);
    Block result(ScalarType::Long, {rows, samples}, {samples, 1});
    const rng::Weights weights{row.dtype,         out.bytes.data(), rows, row.sizes.back(), matrix ? row.strides[0] : 0,
                               row.strides.back()};
    auto* indices = reinterpret_cast<int64_t*>(result.bytes.data());
    if (row.op == "multinomial") {
      rng::multinomial_with_replacement(weights, samples, indices, g);
    } else {
      // Noise is dense in the weights' order of dimensions, as empty_like makes it.
      const bool transposed = matrix && row.strides[0] < row.strides[1];
      Block noise(row.dtype, row.sizes, transposed ? std::vector<int64_t>{1, row.sizes[0]} : contiguous(row.sizes));
      rng::multinomial_without_replacement(weights, samples, indices, noise.target(), g);
    }
    return result.logical();
  } else {
    ADD_FAILURE() << "unknown operator in " << row.line;
  }
  return out.logical();
}

// See libm() in the recorder.
uint32_t libm_checksum() {
  uint32_t crc = 0;
  std::vector<double> values(30000);
  for (double (*const f)(double) :
       {static_cast<double (*)(double)>(std::log), static_cast<double (*)(double)>(std::log1p),
        static_cast<double (*)(double)>(std::exp), static_cast<double (*)(double)>(std::sin),
        static_cast<double (*)(double)>(std::cos), static_cast<double (*)(double)>(std::tan)}) {
    for (int i = 1; i <= 30000; ++i) values[static_cast<size_t>(i - 1)] = f(i / 30011.0);
    crc = crc32(reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(double), crc);
  }
  return crc;
}
uint32_t recorded_libm(const std::string& path) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("# libm ")) return static_cast<uint32_t>(std::stoul(line.substr(7), nullptr, 16));
  return 0;
}

std::vector<Row> load(const std::string& path) {
  std::vector<Row> rows;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::vector<std::string> field;
    std::stringstream parts(line);
    for (std::string f; std::getline(parts, f, '\t');) field.push_back(f);
    const size_t colon = field.at(0).find(':');
    rows.push_back({field[0].substr(0, colon), colon == std::string::npos ? "" : field[0].substr(colon + 1),
                    dtype_of(field.at(1)), integers(field.at(2)), integers(field.at(3)), field.at(4), line,
                    std::stoull(field.at(5)), static_cast<uint32_t>(std::stoul(field.at(6), nullptr, 16)),
                    static_cast<uint32_t>(std::stoul(field.at(7), nullptr, 16))});
  }
  return rows;
}

TEST(RandomStreams, MatchUpstreamBitForBit) {
  const char* other = std::getenv("TN_RNG_ROWS");
  const std::string path = other ? other : recorded();
  const auto rows = load(path);
  const bool same_libm = libm_checksum() == recorded_libm(path);
  int unknown = 0;
  ASSERT_GT(rows.size(), other ? 1u : 2500u);
  std::map<std::string, int> wrong;
  for (const Row& row : rows) {
    GeneratorImpl g(row.seed);
    const auto first = call(row, g), second = call(row, g);
    const uint32_t results = crc32(second.data(), second.size(), crc32(first.data(), first.size()));
    const auto state = g.get_state();
    // Where libm rounds otherwise than on the recording machine, so would upstream: rows of double functions
    // say nothing there.
    if (!same_libm && uses_libm(row)) {
      ++unknown;
      continue;
    }
    if (results != row.results || crc32(state.data(), state.size()) != row.state)
      if (++wrong[row.op + " " + std::string(dtype_name(row.dtype))] == 1)
        ADD_FAILURE() << row.line << (results != row.results ? ": other results" : ": other state");
  }
  if (unknown)
    std::printf("libm rounds otherwise than the recording machine's: %d of %zu rows not compared\n", unknown,
                rows.size());
  for (const auto& [what, count] : wrong) ADD_FAILURE() << what << ": " << count << " rows";
}

TEST(Generator, BlockEqualsSingleDraws) {
  for (const int before : {0, 1, 623, 624, 625})
    for (const int64_t n : {0, 1, 15, 16, 623, 624, 625, 2000}) {
      GeneratorImpl a(7), b(7);
      for (int i = 0; i < before; ++i) {
        a.random();
        b.random();
      }
      std::vector<uint32_t> block(static_cast<size_t>(n));
      a.random_block(block.data(), n);
      for (const uint32_t v : block) ASSERT_EQ(v, b.random());
      EXPECT_EQ(a.get_state(), b.get_state());
    }
}

TEST(Generator, StateRoundTrip) {
  GeneratorImpl a(uint64_t{1} << 40 | 5);
  for (int i = 0; i < 1000; ++i) a.random();
  a.keep_double_normal(-0.25);
  GeneratorImpl b;
  b.set_state(a.get_state());
  EXPECT_EQ(b.current_seed(), uint64_t{1} << 40 | 5);
  EXPECT_EQ(b.get_state(), a.get_state());
  EXPECT_EQ(b.take_double_normal(), -0.25);
  EXPECT_EQ(b.take_double_normal(), std::nullopt);
  const auto copy = a.clone();
  EXPECT_EQ(copy->get_state(), a.get_state());
  EXPECT_EQ(copy->random64(), a.random64());
}

TEST(Generator, RefusesForgedStates) {
  GeneratorImpl g(1);
  g.random();
  const auto good = g.get_state();
  EXPECT_THROW(g.set_state(std::span(good).first(100)), Error);
  const auto with = [&](size_t at, uint8_t value) {
    auto bad = good;
    bad[at] = value;
    return bad;
  };
  EXPECT_THROW(g.set_state(with(12, 0)), Error);     // not seeded
  EXPECT_THROW(g.set_state(with(11, 0x80)), Error);  // negative left
  EXPECT_THROW(g.set_state(with(17, 3)), Error);     // next behind the words
  EXPECT_THROW(g.set_state(with(16, 200)), Error);   // left and next that would read behind the words
  EXPECT_EQ(g.get_state(), good);
}

TEST(RandomFills, CheckArguments) {
  GeneratorImpl g(1);
  Block f(ScalarType::Float, {3}, {1}), i(ScalarType::Int, {3}, {1}), u8(ScalarType::Byte, {3}, {1});
  const auto message = [](auto f) -> std::string {
    try {
      f();
    } catch (const Error& e) {
      return e.message();
    }
    return "no error";
  };
  EXPECT_EQ(message([&] { rng::uniform(f.target(), 2, 1, g); }),
            "uniform_ expects to return a [from, to) range, but found from=2 > to=1");
  EXPECT_EQ(message([&] { rng::normal(f.target(), 0, -1, g); }), "normal expects std >= 0.0, but found std -1");
  EXPECT_EQ(message([&] { rng::normal(i.target(), 0, 1, g); }), "\"normal_kernel_cpu\" not implemented for 'Int'");
  EXPECT_EQ(message([&] { rng::bernoulli(f.target(), 1.5, g); }),
            "bernoulli_ expects p to be in [0, 1], but got p=1.5");
  EXPECT_EQ(message([&] { rng::random_from_to(i.target(), 5, 5, g); }),
            "random_ expects 'from' to be less than 'to', but got from=5 >= to=5");
  EXPECT_EQ(message([&] { rng::random_from_to(u8.target(), 0, 300, g); }), "to - 1 is out of bounds for unsigned char");
  EXPECT_EQ(message([&] { rng::cauchy(i.target(), 0, 1, g); }),
            "Cauchy distribution is a continuous probability distribution. dtype must be a floating point "
            "but you specified int");
}

}  // namespace
}  // namespace tn
