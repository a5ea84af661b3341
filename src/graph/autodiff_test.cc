#include "graph/autodiff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "graph/testing/small_ops.h"
#include "paceline/error.h"
#include "paceline/minimize.h"

namespace paceline {
namespace {

using small_ops::evaluate;
using small_ops::floats;
using testing::ElementsAre;
using testing::HasSubstr;

class AutodiffTest : public testing::Test {
 protected:
  Value add(Value a, Value b) { return graph_.apply("add", {a, b}); }
  Value mul(Value a, Value b) { return graph_.apply("mul", {a, b}); }
  Value sum(Value x) { return graph_.apply("reduce_sum", {x}); }
  Value lookup(Value table, Value ids) { return graph_.apply("embedding_lookup", {table, ids}); }
  Gradient gradient(Value loss, Value wrt) { return differentiate(loss, {&wrt, 1})[0]; }
  std::vector<float> dense_gradient(Value loss, Value wrt) {
    return floats(evaluate(gradient(loss, wrt).dense, feeds_));
  }

  OpRegistry ops_ = small_ops::all();
  Graph graph_{ops_};
  small_ops::Feeds feeds_ = {{"x", Tensor::of<float>({3}, {1, -2, 3})},
                             {"y", Tensor::of<float>({3}, {4, 5, 6})},
                             {"table", Tensor::of<float>({3, 2}, {1, 2, 3, 4, 5, 6})},
                             {"ids", Tensor::of<std::int32_t>({2}, {2, 0})},
                             {"more", Tensor::of<std::int32_t>({1}, {2})}};
  Value x_ = graph_.variable("x", {3}), y_ = graph_.variable("y", {3});
  Value table_ = graph_.variable("table", {3, 2});
  Value ids_ = graph_.input("ids", {2}, DType::kInt32);
  Value more_ = graph_.input("more", {1}, DType::kInt32);
};

TEST_F(AutodiffTest, FollowsTheChainRule) {
  // The derivative of Σ relu(x·y)² by x is 2·relu(x·y)·y.
  const Value loss = sum(graph_.apply("square", {graph_.apply("relu", {mul(x_, y_)})}));
  EXPECT_THAT(dense_gradient(loss, x_), ElementsAre(2 * 4 * 4, 0, 2 * 18 * 6));
  EXPECT_THAT(dense_gradient(loss, y_), ElementsAre(2 * 4 * 1, 0, 2 * 18 * 3));
}

TEST_F(AutodiffTest, AddsWhatSeveralReadersSend) {
  const Value loss = sum(add(mul(x_, x_), mul(x_, y_)));
  EXPECT_THAT(dense_gradient(loss, x_), ElementsAre(2 + 4, -4 + 5, 6 + 6));
}

TEST_F(AutodiffTest, ByAnIntermediateValueAndByTheLossItself) {
  const Value product = mul(x_, y_);
  const Value loss = sum(graph_.apply("square", {product}));
  EXPECT_THAT(dense_gradient(loss, product), ElementsAre(8, -20, 36));
  EXPECT_THAT(dense_gradient(loss, loss), ElementsAre(1));
}

TEST_F(AutodiffTest, WhatTheLossDoesNotReadHasNone) {
  EXPECT_FALSE(gradient(sum(x_), y_));
  const Value later = mul(x_, y_);
  const Value loss = sum(x_);
  EXPECT_FALSE(gradient(loss, later));
}

TEST_F(AutodiffTest, OutputsThatNobodyReadCountAsZero) {
  const Node& twins = graph_.add("twins", {&x_, 1});
  EXPECT_THAT(dense_gradient(sum(twins.output(1)), x_), ElementsAre(2, 2, 2));
  EXPECT_THAT(dense_gradient(sum(twins.output(0)), x_), ElementsAre(1, 1, 1));
  const Value both = sum(add(twins.output(0), twins.output(1)));
  EXPECT_THAT(dense_gradient(both, x_), ElementsAre(3, 3, 3));
}

TEST_F(AutodiffTest, ALookupOfAVariableGivesRows) {
  const Gradient by_table = gradient(sum(lookup(table_, ids_)), table_);
  ASSERT_TRUE(by_table.sparse());
  EXPECT_FALSE(by_table.dense);
  EXPECT_EQ(by_table.ids, ids_);
  EXPECT_THAT(floats(evaluate(by_table.rows, feeds_)), ElementsAre(1, 1, 1, 1));
}

TEST_F(AutodiffTest, SeveralLookupsAreConcatenated) {
  const Value loss = add(sum(lookup(table_, ids_)),
                         sum(graph_.apply("scale", {lookup(table_, more_)}, {{"factor", 3.0}})));
  const Gradient by_table = gradient(loss, table_);
  ASSERT_TRUE(by_table.sparse());
  EXPECT_EQ(by_table.rows.shape(), (Shape{3, 2}));
  const Tensor ids = evaluate(by_table.ids, feeds_), rows = evaluate(by_table.rows, feeds_);
  std::vector<float> total(3);
  for (std::size_t r = 0; r < 3; ++r) {
    total[std::size_t(ids.data<std::int32_t>()[r])] += rows.data<float>()[2 * r];
  }
  EXPECT_THAT(total, ElementsAre(1, 0, 4));
}

TEST_F(AutodiffTest, RowsAreScatteredWhereTheyMeetADenseGradient) {
  const Value loss = add(sum(lookup(table_, ids_)), sum(table_));
  const Gradient by_table = gradient(loss, table_);
  ASSERT_FALSE(by_table.sparse());
  EXPECT_THAT(floats(evaluate(by_table.dense, feeds_)), ElementsAre(2, 2, 1, 1, 2, 2));
}

TEST_F(AutodiffTest, RowsAreScatteredWhereTheTableIsNoVariable) {
  const Value scaled = graph_.apply("scale", {table_}, {{"factor", 3.0}});
  const Value loss = sum(lookup(scaled, ids_));
  EXPECT_THAT(dense_gradient(loss, table_), ElementsAre(3, 3, 0, 0, 3, 3));
  EXPECT_THAT(dense_gradient(loss, scaled), ElementsAre(1, 1, 0, 0, 1, 1));
}

TEST_F(AutodiffTest, AnOpWithoutGradientIsNamedWithItsReason) {
  const Value loss = sum(graph_.apply("floor", {x_}, {}, "layer/floor"));
  try {
    gradient(loss, x_);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_STREQ(error.what(), "[floor] 'layer/floor' has no gradient: no gradient, for a test");
  }
}

TEST_F(AutodiffTest, AnOpWithoutGradientBesideTheWayDoesNotMatter) {
  const Value floor = graph_.apply("floor", {y_});
  graph_.apply("floor", {x_});
  EXPECT_THAT(dense_gradient(sum(mul(x_, floor)), x_), ElementsAre(4, 5, 6));
}

TEST_F(AutodiffTest, NothingFlowsThroughIntegers) {
  const Value row = graph_.apply("arg_max", {x_});
  EXPECT_EQ(row.dtype(), DType::kInt32);
  const Value zero = graph_.apply("concat", {more_, more_});
  const Gradient by_x = gradient(sum(lookup(table_, zero)), x_);
  EXPECT_FALSE(by_x);
  EXPECT_THROW(gradient(sum(x_), ids_), Error);
}

TEST_F(AutodiffTest, TheLossMustBeAFloatScalar) {
  try {
    gradient(mul(x_, y_), x_);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("'mul' is float32 (3); a float scalar is needed"));
  }
  EXPECT_THROW(gradient(graph_.apply("arg_max", {x_}), x_), Error);
  EXPECT_THROW(gradient(Value(), x_), Error);
  Graph other(ops_);
  EXPECT_THROW(gradient(sum(x_), other.variable("x", {3})), Error);
}

TEST_F(AutodiffTest, GradientNodesAreNamedAfterWhatTheyDifferentiate) {
  const Value loss = sum(graph_.apply("square", {x_}, {}, "layer/square"));
  EXPECT_THAT(gradient(loss, x_).dense.name(), HasSubstr("gradients/layer/square/mul"));
}

class GradientsTest : public AutodiffTest {
 protected:
  /// Returns the loss after one element of a fed tensor has changed.
  double loss_with(Value loss, const std::string& fed, std::size_t element, float value) const {
    small_ops::Feeds feeds = feeds_;
    std::vector<float> data = floats(feeds.at(fed));
    data[element] = value;
    Tensor other(DType::kFloat32, feeds.at(fed).shape());
    std::ranges::copy(data, other.data<float>().begin());
    feeds.insert_or_assign(fed, other);
    return evaluate(loss, feeds).item<float>();
  }
  void expect_numerical(Value loss, Value by, const std::string& fed) {
    const std::vector<float> given = floats(evaluate(gradients(loss, {by})[0], feeds_));
    const std::vector<float> at = floats(feeds_.at(fed));
    ASSERT_EQ(given.size(), at.size());
    constexpr float kStep = 0.03125f;
    for (std::size_t i = 0; i < at.size(); ++i) {
      const double slope =
          (loss_with(loss, fed, i, at[i] + kStep) - loss_with(loss, fed, i, at[i] - kStep)) /
          (2 * double(kStep));
      EXPECT_NEAR(given[i], slope, 1e-3 * (1 + std::abs(slope))) << fed << " " << i;
    }
  }
  std::string refusal(Value loss, const std::vector<Value>& values) {
    try {
      gradients(loss, values);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.what();
    }
    return "";
  }
};

TEST_F(GradientsTest, AreTheSlopesOfTheLoss) {
  const Value input = graph_.input("point", {3});
  feeds_.insert({"point", Tensor::of<float>({3}, {0.5f, -1, 2})});
  const Value hidden = graph_.apply("square", {mul(x_, input)});
  const Value loss = add(sum(mul(hidden, y_)), sum(lookup(table_, ids_)));
  expect_numerical(loss, x_, "x");
  expect_numerical(loss, input, "point");
  expect_numerical(loss, table_, "table");
  EXPECT_THAT(floats(evaluate(gradients(loss, {hidden})[0], feeds_)), ElementsAre(4, 5, 6));
}

TEST_F(GradientsTest, HaveTheOrderAndTheTypesOfTheValues) {
  const Value loss = sum(mul(x_, y_));
  const std::vector<Value> both = gradients(loss, {y_, x_});
  ASSERT_EQ(both.size(), 2u);
  EXPECT_THAT(floats(evaluate(both[0], feeds_)), ElementsAre(1, -2, 3));
  EXPECT_THAT(floats(evaluate(both[1], feeds_)), ElementsAre(4, 5, 6));
  EXPECT_EQ(both[0].type(), y_.type());
}

TEST_F(GradientsTest, CanBePartOfALoss) {
  // Σ (d Σ x³ / d x)² = Σ 9·x⁴, of which the gradient is 36·x³.
  const Value first = gradients(sum(mul(graph_.apply("square", {x_}), x_)), {x_})[0];
  expect_numerical(sum(graph_.apply("square", {first})), x_, "x");
}

TEST_F(GradientsTest, SayWhyThereAreNone) {
  const Value loss = sum(x_);
  Graph other(ops_);
  EXPECT_THAT(refusal(x_, {x_}), HasSubstr("'x' is float32 (3); a float scalar is needed"));
  EXPECT_THAT(refusal(loss, {x_, y_}), HasSubstr("'reduce_sum' does not depend on 'y'"));
  EXPECT_THAT(refusal(sum(lookup(table_, ids_)), {ids_}),
              HasSubstr("'ids' is int32 (2), which has no derivative"));
  EXPECT_THAT(refusal(loss, {other.variable("there", {3})}),
              HasSubstr("'there' is not of the graph of the loss 'reduce_sum'"));
  EXPECT_THAT(refusal(loss, {Value()}), HasSubstr("is no value"));
}

}  // namespace
}  // namespace paceline
