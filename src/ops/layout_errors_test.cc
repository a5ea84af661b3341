// Tests the shapes that ops without weights infer, and their errors for shapes that do not fit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/error_of.h"
#include "paceline/error.h"
#include "paceline/op.h"
#include "paceline/ops.h"

namespace paceline {
namespace {

class LayoutErrorsTest : public testing::Test {
 protected:
  Value x(const Shape& shape, DType dtype = DType::kFloat32) {
    return graph_.input("x" + std::to_string(count_++), shape, dtype);
  }
  Graph graph_;
  int count_ = 0;
};

template <typename F>
std::string message_of(F&& f) {
  return error_of(ErrorCode::kInvalidArgument, f);
}

TEST_F(LayoutErrorsTest, Arithmetic) {
  EXPECT_EQ(add(x({4, 1, 5}), x({3, 1})).shape(), Shape({4, 3, 5}));
  EXPECT_EQ(mul(x({0, 3}), x({1})).shape(), Shape({0, 3}));
  EXPECT_EQ(message_of([&] {
              add(x({3, 4}), x({5, 6}));
            }),
            "[add] cannot broadcast (3,4) with (5,6)");
  EXPECT_EQ(message_of([&] { sub(x({3}), x({3}, DType::kFloat64)); }),
            "[sub] inputs of two types: float32 (3) and float64 (3)");
  EXPECT_THAT(message_of([&] { exp(x({3}, DType::kInt32)); }),
              testing::HasSubstr("[exp] input 0 is int32 (3)"));
}

TEST_F(LayoutErrorsTest, Bias) {
  EXPECT_EQ(bias(x({2, 3, 5}), x({5})).shape(), Shape({2, 3, 5}));
  EXPECT_EQ(message_of([&] {
              bias(x({3, 4}), x({3}));
            }),
            "[bias] cannot add (3) to the rows of (3,4)");
}

TEST_F(LayoutErrorsTest, Reshape) {
  EXPECT_EQ(reshape(x({3, 4}), {2, -1}).shape(), Shape({2, 6}));
  EXPECT_EQ(message_of([&] {
              reshape(x({3, 4}), {5, -1});
            }),
            "[reshape] cannot make (3,4) into (5,-1)");
  EXPECT_EQ(message_of([&] {
              reshape(x({3, 4}), {-1, -1});
            }),
            "[reshape] cannot make (3,4) into (-1,-1)");
  EXPECT_EQ(message_of([&] {
              reshape(x({0, 4}), {0, -1});
            }),
            "[reshape] cannot make (0,4) into (0,-1)");
}

TEST_F(LayoutErrorsTest, Transpose) {
  EXPECT_EQ(transpose(x({2, 3, 4}), {2, 0, 1}).shape(), Shape({4, 2, 3}));
  EXPECT_EQ(message_of([&] {
              transpose(x({3, 4}), {0, 0});
            }),
            "[transpose] cannot permute (3,4) by (0,0)");
  EXPECT_EQ(message_of([&] {
              transpose(x({3, 4}), {0, 2});
            }),
            "[transpose] cannot permute (3,4) by (0,2)");
}

TEST_F(LayoutErrorsTest, ConcatAndSplit) {
  const Value parts[] = {x({3, 4}), x({3, 5})};
  EXPECT_EQ(concat(parts, -1).shape(), Shape({3, 9}));
  EXPECT_EQ(message_of([&] { concat(parts, 0); }),
            "[concat] cannot join float32 (3,4) with float32 (3,5) along axis 0");
  EXPECT_EQ(message_of([&] { concat(parts, 2); }), "[concat] has no axis 2 in (3,4)");
  EXPECT_EQ(message_of([&] { concat({}, 0); }), "[concat] needs at least one input");
  EXPECT_EQ(split(x({3, 4}), 2, 1)[1].shape(), Shape({3, 2}));
  EXPECT_EQ(message_of([&] {
              split(x({3, 4}), 2, 0);
            }),
            "[split] cannot cut (3,4) into 2 equal parts along axis 0");
}

TEST_F(LayoutErrorsTest, SliceAndPad) {
  EXPECT_EQ(message_of([&] {
              slice(x({3, 4}), {1, 2}, {2, 3});
            }),
            "[slice] cannot take (2,3) at (1,2) of (3,4)");
  EXPECT_EQ(message_of([&] {
              slice(x({3, 4}), {1}, {2});
            }),
            "[slice] cannot take (2) at (1) of (3,4)");
  EXPECT_EQ(pad(x({3, 4}), {1, 0}, {0, 2}).shape(), Shape({4, 6}));
  EXPECT_EQ(message_of([&] {
              pad(x({3, 4}), {1, -1}, {0, 0});
            }),
            "[pad] cannot pad (3,4) by (1,-1) before and (0,0) after");
}

TEST_F(LayoutErrorsTest, Reductions) {
  EXPECT_EQ(reduce_sum(x({2, 3, 4}), {-1, 0}).shape(), Shape({3}));
  EXPECT_EQ(reduce_max(x({2, 3, 4}), {1}, true).shape(), Shape({2, 1, 4}));
  EXPECT_EQ(reduce_mean(x({2, 3})).shape(), Shape());
  EXPECT_EQ(message_of([&] { reduce_sum(x({2, 3}), {2}); }), "[reduce_sum] has no axis 2 in (2,3)");
  EXPECT_EQ(message_of([&] {
              reduce_sum(x({2, 3}), {1, -1});
            }),
            "[reduce_sum] names axis -1 twice");
  EXPECT_EQ(message_of([&] {
              reduce_mean(x({0, 3}));
            }),
            "[reduce_mean] has nothing to reduce in (0,3)");
}

TEST_F(LayoutErrorsTest, FusedElementwise) {
  auto fused = [&](std::initializer_list<Value> inputs, const char* program) {
    return graph_.apply("fused_elementwise", inputs, {{"program", std::string(program)}});
  };
  EXPECT_EQ(fused({x({3, 4}), x({})}, "add i0 i1\n").shape(), Shape({3, 4}));
  EXPECT_EQ(message_of([&] {
              fused({x({3, 4}), x({4})}, "add i0 i1\n");
            }),
            "[fused_elementwise] takes inputs of shape (3,4) or of one element, not (4)");
  EXPECT_EQ(message_of([&] {
              fused({x({3, 4})}, "add i0 i1\n");
            }),
            "[fused_elementwise] reads input 1 of 1");
}

TEST_F(LayoutErrorsTest, CostsCountElementsAndBytes) {
  const Value sum = add(x({3, 4}), x({4}));
  const Cost cost = sum.node().op().cost(sum.node());
  EXPECT_EQ(cost.flops, 12);
  EXPECT_EQ(cost.bytes, 4 * (12 + 4 + 12));
  const Value view = reshape(sum, {12});
  EXPECT_EQ(view.node().op().cost(view.node()).bytes, 0);
}

TEST_F(LayoutErrorsTest, AFusedChainCostsWhatItsOpsDo) {
  const Value value = x({3, 4});
  const Value one_by_one[] = {exp(value), tanh(value), mul(value, value)};
  double flops = 0;
  for (const Value& y : one_by_one) flops += y.node().op().cost(y.node()).flops;
  const std::string program = "exp i0\ntanh i0\nmul t0 t1\n";
  const Value chain = graph_.apply("fused_elementwise", {value}, {{"program", program}});
  EXPECT_EQ(chain.node().op().cost(chain.node()).flops, flops);
  EXPECT_EQ(flops, 12 * (10 + 12 + 1));
}

TEST(BuiltinOpsTest, AreTheSameEachTimeAndTheDefault) {
  Graph graph;
  EXPECT_EQ(&graph.ops(), &builtin_ops());
  EXPECT_EQ(copy_of_builtin_ops().all().size(), builtin_ops().all().size());
}

}  // namespace
}  // namespace paceline
