// The door: which kernel a call reaches, what falls through, what refuses, and what an observer sees.
#include "runtime/door.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "generated/ops/add.h"
#include "generated/ops/relu.h"
#include "generated/ops/t.h"
#include "runtime/autograd_meta.h"
#include "runtime/copy.h"
#include "runtime/observe.h"
#include "runtime/op_table.h"
#include "runtime/refuse.h"
#include "runtime/schema.h"

namespace tn {
namespace {

Tensor vector_of(std::vector<float> values) {
  Tensor t = empty({static_cast<int64_t>(values.size())}, ScalarType::Float);
  std::copy(values.begin(), values.end(), t.data<float>());
  return t;
}
float at(const Tensor& t, int64_t i) { return t.data<float>()[i]; }

// Gives back its first argument and counts its calls.
class Counting final : public BoxedKernel {
 public:
  void call(OpRow&, KeySet, std::span<const Arg> args, Value* out) override {
    ++calls;
    out[0] = Value::copy_of(args[0]);
  }
  int calls = 0;
};

class DoorTest : public testing::Test {
 protected:
  void SetUp() override { init_core(); }
};

TEST_F(DoorTest, EveryRowHasItsInfoAndIsFoundByName) {
  for (size_t id = 0; id < kNumNativeOps; ++id) {
    const OpInfo& info = op_infos[id];
    ASSERT_EQ(find_op(info.name, info.overload), &op_rows[id]) << info.name << '.' << info.overload;
    EXPECT_EQ(info.way == Way::Refuse, info.reason != nullptr) << info.name;
    EXPECT_EQ(schema_of(op_rows[id]).arguments().size(), info.num_args) << info.schema;
    EXPECT_EQ(schema_of(op_rows[id]).returns().size(), info.num_returns) << info.schema;
  }
  EXPECT_EQ(find_op("aten::no_such_operator", ""), nullptr);
  EXPECT_EQ(find_op("aten::add", "NoSuchOverload"), nullptr);
}

TEST_F(DoorTest, TypedAndBoxedCallsAgree) {
  const Tensor a = vector_of({-1, 2}), b = vector_of({3, 4});
  const Tensor typed = at::add(a, b, 2);
  const Arg args[] = {Arg::of(a), Arg::of(b), Arg::of(int64_t{2})};
  Value out;
  door::call_boxed(op_rows[kOp_add_Tensor], args, &out);
  const Tensor boxed = out.take_tensor();
  for (int64_t i = 0; i < 2; ++i) EXPECT_EQ(at(typed, i), at(boxed, i));
  EXPECT_EQ(at(typed, 0), 5.f);
}

TEST_F(DoorTest, RegistrationOverridesAndComesBack) {
  const Tensor a = vector_of({-1, 2});
  Ref<Counting> first = Ref<Counting>::adopt(new Counting()), second = Ref<Counting>::adopt(new Counting());
  OpRow& relu = op_rows[kOp_relu];
  register_kernel(relu, {DispatchKey::CPU, Ref<BoxedKernel>::share(first.get())});
  EXPECT_EQ(at(at::relu(a), 0), -1.f);
  register_kernel(relu, {DispatchKey::CPU, Ref<BoxedKernel>::share(second.get())});
  at::relu(a);
  EXPECT_EQ(first->calls, 1);
  EXPECT_EQ(second->calls, 1);
  deregister_kernel(relu, DispatchKey::CPU, second.get());
  at::relu(a);
  EXPECT_EQ(first->calls, 2);
  deregister_kernel(relu, DispatchKey::CPU, first.get());
  EXPECT_EQ(at(at::relu(a), 0), 0.f);
}

TEST_F(DoorTest, AnUnservedOperatorRefusesByNameAndReason) {
  const OpRow* refused = nullptr;
  for (size_t id = 0; id < kNumNativeOps && !refused; ++id)
    if (op_infos[id].reason && op_infos[id].num_args == 1 &&
        std::string_view(op_infos[id].schema).find("(Tensor self) -> Tensor") != std::string_view::npos)
      refused = &op_rows[id];
  ASSERT_NE(refused, nullptr);
  const Arg args[] = {Arg::of(vector_of({1}))};
  Value out;
  const int64_t before = refusal_count();
  try {
    door::call_boxed(const_cast<OpRow&>(*refused), args, &out);
    FAIL() << "expected a refusal";
  } catch (const Refusal& e) {
    EXPECT_NE(e.message().find(refused->info->name), std::string::npos) << e.message();
    EXPECT_NE(e.message().find(refused->info->reason), std::string::npos) << e.message();
  }
  EXPECT_EQ(refusal_count(), before + 1);
}

TEST_F(DoorTest, AnUnservedDtypeRefuses) {
  const Tensor a = empty({2}, ScalarType::ComplexFloat);
  try {
    at::relu(a);
    FAIL() << "expected a refusal";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::NotImplemented);
    EXPECT_NE(e.message().find("aten::relu refused: dtype complex64"), std::string::npos) << e.message();
  }
}

TEST_F(DoorTest, InPlaceFormsBumpTheVersionOnce) {
  const Tensor a = vector_of({-1, 2});
  at::relu_(a);
  EXPECT_EQ(a->version(), 1u);
  const Tensor view = at::t(a);
  EXPECT_TRUE(is_view(view));
  at::relu_(view);
  EXPECT_EQ(a->version(), 2u);
  EXPECT_EQ(view->version(), 2u);
}

TEST_F(DoorTest, GradientsMarkResultsOnlyInGradMode) {
  const Tensor a = vector_of({-1, 2});
  set_requires_grad(a, true);
  EXPECT_TRUE(at::relu(a).requires_grad());
  const GradModeGuard off(false);
  EXPECT_FALSE(at::relu(a).requires_grad());
}

TEST_F(DoorTest, DefinedOperatorsAreFoundCalledAndForgotten) {
  OpRow& op = define_op("test::twice", "", "test::twice(Tensor x, int n=2) -> Tensor", 0);
  const Tensor a = vector_of({1});
  const Arg args[] = {Arg::of(a), Arg::of(int64_t{2})};
  Value out;
  EXPECT_THROW(door::call_boxed(op, args, &out), Refusal);
  Ref<Counting> kernel = Ref<Counting>::adopt(new Counting());
  register_kernel(op, {DispatchKey::CompositeExplicitAutograd, Ref<BoxedKernel>::share(kernel.get())});
  door::call_boxed(op, args, &out);
  EXPECT_EQ(kernel->calls, 1);
  EXPECT_TRUE(out.take_tensor().is_same(a));
  undefine_op(op);
  EXPECT_EQ(find_op("test::twice", ""), nullptr);
}

TEST_F(DoorTest, ARecordedRunGivesTheSameBitsAgain) {
  const Tensor a = vector_of({-1, 2}), other = vector_of({5, -6});
  Recorder run;
  attach_observer(run);
  EXPECT_THROW(attach_observer(run), Error);
  const Tensor out = at::add(at::relu(a), a, 1);
  detach_observer(run);
  ASSERT_EQ(run.calls().size(), 2u);
  EXPECT_STREQ(run.calls()[1].op->info->name, "aten::add");
  const int64_t wanted[] = {run.number_of(out)};
  const std::vector<Tensor> same = run.replay({}, wanted);
  for (int64_t i = 0; i < 2; ++i) EXPECT_EQ(at(same[0], i), at(out, i));
  const std::pair<int64_t, Tensor> inputs[] = {{run.number_of(a), other}};
  EXPECT_EQ(at(run.replay(inputs, wanted)[0], 0), 10.f);
  const int64_t unknown[] = {99};
  EXPECT_THROW(run.replay({}, unknown), Error);
  run.around("map_");
  EXPECT_THROW(run.replay({}, wanted), Error);
}

TEST_F(DoorTest, ACallThatThrowsLeavesNoTraceInTheRecording) {
  Recorder run;
  attach_observer(run);
  EXPECT_THROW(at::add(vector_of({1, 2}), vector_of({1, 2, 3}), 1), Error);
  at::relu(vector_of({1}));
  detach_observer(run);
  EXPECT_EQ(run.calls().size(), 1u);
}

}  // namespace
}  // namespace tn
