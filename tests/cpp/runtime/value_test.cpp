#include "runtime/value.h"

#include <gtest/gtest.h>

#include <array>

#include "runtime/copy.h"
#include "runtime/rng.h"

namespace tn {
namespace {

struct Probe : Object {
  explicit Probe(int* dead) : dead_(dead) {}
  ~Probe() override { ++*dead_; }
  int* dead_;
};

TEST(Value, CopiesEveryKind) {
  const Tensor t = empty({2}, ScalarType::Float);
  const std::array<int64_t, 2> ints{1, 2};
  const std::array<double, 2> doubles{1.5, 2.5};
  const std::array<bool, 3> bools{true, false, true};
  const std::array<Tensor, 2> tensors{t, Tensor()};
  const std::array<Scalar, 2> scalars{Scalar(1), Scalar(2.5)};
  const std::array<std::string_view, 2> strings{"a", "long enough to need memory of its own"};
  const Storage storage = Storage::allocate(8);
  const Stream stream{3, Device(DeviceType::CUDA, 1)};
  const Ref<GeneratorImpl> generator = make_ref<GeneratorImpl>();
  const Arg args[] = {
      Arg::of(t),
      Arg::of(int64_t{-5}),
      Arg::of(2.5),
      Arg::of(true),
      Arg::of(std::complex<double>(1, -2)),
      Arg::of(std::string_view("text")),
      Arg::of(Device(DeviceType::CUDA, 3)),
      Arg::of(generator.get()),
      Arg::of(storage),
      Arg::of(stream),
      Arg::of(IntArrayRef(ints.data(), 2)),
      Arg::of(ArrayRef<double>(doubles.data(), 2)),
      Arg::of(ArrayRef<bool>(bools.data(), 3)),
      Arg::of(TensorList(tensors.data(), 2)),
      Arg::of(ArrayRef<Scalar>(scalars.data(), 2)),
      Arg::list(Tag::StringList, strings.data(), 2),
      Arg(),
  };
  for (const Arg& a : args) {
    Value v = Value::copy_of(a);
    const Value copy = v;
    v = Value();
    const Arg b = copy.arg();
    ASSERT_EQ(b.tag, a.tag);
    switch (a.tag) {
      case Tag::Tensor: EXPECT_TRUE(b.tensor().is_same(t)); break;
      case Tag::Int:
      case Tag::Bool: EXPECT_EQ(b.i, a.i); break;
      case Tag::Double: EXPECT_EQ(b.d, a.d); break;
      case Tag::Complex: EXPECT_EQ(b.scalar().to_complex(), a.scalar().to_complex()); break;
      case Tag::String: EXPECT_EQ(b.string(), "text"); break;
      case Tag::Device: EXPECT_EQ(b.device(), Device(DeviceType::CUDA, 3)); break;
      case Tag::Generator: EXPECT_EQ(b.generator(), generator.get()); break;
      case Tag::Storage: EXPECT_EQ(b.storage(), storage.get()); break;
      case Tag::Stream: EXPECT_EQ(static_cast<const Stream*>(b.p)->id, 3); break;
      case Tag::IntList: EXPECT_EQ(b.ints(), a.ints()); break;
      case Tag::DoubleList: EXPECT_EQ(b.doubles(), a.doubles()); break;
      case Tag::BoolList: EXPECT_EQ(b.bools(), a.bools()); break;
      case Tag::TensorList: EXPECT_TRUE(b.tensors()[0].is_same(t) && !b.tensors()[1].defined()); break;
      case Tag::ScalarList: EXPECT_TRUE(b.scalars()[1].equal(Scalar(2.5))); break;
      case Tag::StringList: EXPECT_EQ(static_cast<const std::string_view*>(b.p)[1], strings[1]); break;
      default: break;
    }
  }
  EXPECT_EQ(t->use_count(), 2u);  // t and the array
}

TEST(Value, ObjectsDieOnce) {
  int dead = 0;
  {
    const Ref<Object> one = Ref<Object>::adopt(new Probe(&dead));
    const Object* const list[] = {one.get(), one.get()};
    const Value v(one), w = v, l = Value::copy_of(Arg::list(Tag::ObjectList, list, 2));
    EXPECT_EQ(one->use_count(), 5u);
  }
  EXPECT_EQ(dead, 1);
}

TEST(Value, ScalarsKeepTheirKind) {
  for (const Scalar& s :
       {Scalar(1), Scalar(true), Scalar(1.5), Scalar(std::complex<double>(0, 1)), Scalar(~uint64_t{0})}) {
    EXPECT_EQ(Value(s).arg().scalar().kind(), s.kind());
    EXPECT_TRUE(Value(s).arg().scalar().equal(s));
  }
  // A 0-dim tensor where a number is expected.
  const Tensor t = scalar_tensor(Scalar(3), ScalarType::Int);
  EXPECT_TRUE(Arg::of(t).scalar().equal(Scalar(3)));
}

TEST(Value, TakeTensorMoves) {
  Value v(empty({1}, ScalarType::Float));
  const Tensor t = v.take_tensor();
  EXPECT_EQ(t->use_count(), 1u);
  EXPECT_TRUE(v.is_none());
  EXPECT_TRUE(Value(Tensor()).is_none());
}

}  // namespace
}  // namespace tn
