#include "paceline/op.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "paceline/error.h"

namespace paceline {
namespace {

Op whole_op() {
  Op op;
  op.name = "twice";
  op.infer = [](const OpInputs& in) { return std::vector{in.types[0]}; };
  op.cost = [](const Node&) { return Cost{}; };
  op.no_gradient = "it is a test";
  op.kernel = [](const Node&, const KernelCall&) {};
  return op;
}

void expect_refused(Op op, const std::string& why) {
  OpRegistry ops;
  try {
    ops.add(std::move(op));
    ADD_FAILURE() << "was added";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), testing::HasSubstr(why));
  }
}

TEST(OpRegistry, FindsWhatWasAdded) {
  OpRegistry ops;
  const Op& added = ops.add(whole_op());
  EXPECT_EQ(&ops.find("twice"), &added);
  EXPECT_TRUE(ops.contains("twice"));
  EXPECT_FALSE(ops.contains("thrice"));
  EXPECT_EQ(ops.all(), std::vector<const Op*>{&added});
  EXPECT_THROW(ops.add(whole_op()), Error);
}

TEST(OpRegistry, RefusesAnOpThatDoesNotDeclareAll) {
  Op op = whole_op();
  op.name = "";
  expect_refused(op, "no name");
  op = whole_op();
  op.infer = {};
  expect_refused(op, "infer is missing");
  op = whole_op();
  op.no_gradient = "";
  expect_refused(op, "neither a gradient nor a reason");
}

TEST(OpRegistry, AnOpThatStatesNoCostHasThatOfItsElements) {
  OpRegistry ops;
  Op op = whole_op();
  op.cost = {};
  ops.add(op);
  op.name = "source";
  op.infer = [](const OpInputs&) { return std::vector<ValueType>{{DType::kFloat64, Shape{3, 5}}}; };
  ops.add(op);
  Graph graph(ops);
  const Value y = graph.apply("twice", {graph.apply("source", {})});
  const Cost cost = y.node().op().cost(y.node());
  EXPECT_EQ(cost.flops, 15);
  EXPECT_EQ(cost.bytes, 2 * 15 * 8);
}

TEST(OpRegistry, AnOwnOpNeedsAKernel) {
  OpRegistry ops;
  Op op = whole_op();
  op.kernel = {};
  EXPECT_THROW(register_op(ops, op), Error);
  EXPECT_EQ(register_op(ops, whole_op()).name, "twice");
}

}  // namespace
}  // namespace paceline
