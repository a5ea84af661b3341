#include "graph/rewrite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/error_of.h"
#include "graph/testing/small_ops.h"
#include "paceline/error.h"

namespace paceline {
namespace {

using small_ops::evaluate;
using small_ops::floats;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class SmallEvaluator : public ConstantEvaluator {
 public:
  std::vector<Tensor> evaluate(const Node& node, std::span<const Tensor> inputs) override {
    return small_ops::run_node(node, inputs);
  }
};

class RewriteTest : public testing::Test {
 protected:
  Value apply(const std::string& op, std::initializer_list<Value> inputs,
              Attributes attributes = {}) {
    return graph_.apply(op, inputs, std::move(attributes));
  }
  Value scale(Value x, double factor) { return apply("scale", {x}, {{"factor", factor}}); }
  RewrittenGraph rewritten(std::vector<Value> roots, const RewriteOptions& options = {},
                           bool keep_assignments = true) {
    return rewrite(graph_, roots, keep_assignments, options, &evaluator_);
  }
  static std::vector<std::string> op_names(const RewrittenGraph& result) {
    std::vector<std::string> names;
    for (const auto& node : result.graph->nodes()) names.push_back(node->op().name);
    return names;
  }
  /// Expects that the roots of the rewritten graph have the values of the original ones.
  void expect_same_values(const std::vector<Value>& roots, const RewrittenGraph& result) {
    ASSERT_EQ(result.roots.size(), roots.size());
    for (std::size_t i = 0; i < roots.size(); ++i) {
      EXPECT_EQ(result.roots[i].type(), roots[i].type());
      EXPECT_EQ(floats(evaluate(result.roots[i], feeds_)), floats(evaluate(roots[i], feeds_)));
    }
  }

  OpRegistry ops_ = small_ops::all();
  Graph graph_{ops_};
  SmallEvaluator evaluator_;
  small_ops::Feeds feeds_ = {{"x", Tensor::of<float>({2, 2}, {1, -2, 0.3f, 4})},
                             {"y", Tensor::of<float>({2, 2}, {0.1f, 2, -3, 7})},
                             {"b", Tensor::of<float>({2}, {0.5f, -1})},
                             {"s", Tensor::of<float>({1}, {0.7f})},
                             {"state", Tensor::of<float>({2, 2}, {1, 2, 3, 4})}};
  Value x_ = graph_.input("x", {2, 2}), y_ = graph_.variable("y", {2, 2});
  Value b_ = graph_.variable("b", {2}), s_ = graph_.input("s", {1});
  const RewriteOptions nothing_{false, false, false};
};

TEST_F(RewriteTest, LeavesOutDeadNodes) {
  const Value kept = apply("relu", {x_});
  apply("relu", {y_});
  const RewrittenGraph result = rewritten({kept}, nothing_);
  EXPECT_THAT(op_names(result), ElementsAre("input", "relu"));
  expect_same_values({kept}, result);
}

TEST_F(RewriteTest, KeepsNamesAndInitializers) {
  const Value w = graph_.variable("layer/w", {2, 2}, Initializer::uniform(-1, 1));
  const Value sum = graph_.apply("add", {x_, w}, {}, "layer/sum");
  const RewrittenGraph result = rewritten({sum});
  EXPECT_EQ(result.graph->find("layer/w").node().attributes().get<double>("init_a"), -1);
  EXPECT_EQ(result.graph->find("x").shape(), (Shape{2, 2}));
  EXPECT_EQ(result.roots[0].name(), "layer/sum");
}

TEST_F(RewriteTest, KeepsNamedValuesThatAreRoots) {
  const Value first = graph_.named("first", apply("relu", {x_}));
  const Value second = graph_.named("second", apply("relu", {first}));
  const RewrittenGraph result = rewritten({second});
  EXPECT_EQ(result.graph->find("second"), result.roots[0]);
  EXPECT_FALSE(result.graph->names().contains("first"));
}

TEST_F(RewriteTest, CarriesAssignmentsOver) {
  const Value state = graph_.local("state", {2, 2});
  graph_.assign(state, apply("add", {state, x_}));
  const Value root = apply("relu", {y_});
  const RewrittenGraph with = rewritten({root});
  ASSERT_EQ(with.graph->assignments().size(), 1U);
  EXPECT_EQ(with.graph->assignments()[0].local, with.graph->find("state"));
  EXPECT_EQ(with.graph->assignments()[0].value.node().op().name, "add");
  const RewrittenGraph without = rewritten({root}, {}, false);
  EXPECT_THAT(without.graph->assignments(), IsEmpty());
  EXPECT_THAT(op_names(without), ElementsAre("variable", "relu"));
}

TEST_F(RewriteTest, ARootMayBeAskedForTwiceAndMayBeAnInput) {
  const Value root = apply("relu", {x_});
  const RewrittenGraph result = rewritten({root, x_, root});
  EXPECT_EQ(result.roots[0], result.roots[2]);
  EXPECT_EQ(result.roots[1], result.graph->find("x"));
}

TEST_F(RewriteTest, FoldsConstants) {
  const Value two = graph_.constant(Tensor::of<float>({2, 2}, {2, 2, 2, 2}), "two");
  const Value six = scale(two, 3);
  const Value root = apply("add", {x_, apply("add", {six, two})});
  const RewrittenGraph result = rewritten({root});
  EXPECT_THAT(op_names(result), ElementsAre("input", "constant", "add"));
  expect_same_values({root}, result);
  const RewrittenGraph as_it_was = rewritten({root}, nothing_);
  EXPECT_EQ(as_it_was.graph->nodes().size(), 5U);
}

TEST_F(RewriteTest, ARootMayFold) {
  const Value root = scale(graph_.constant(Tensor::scalar(2.0f)), 3);
  const RewrittenGraph result = rewritten({root});
  EXPECT_THAT(op_names(result), ElementsAre("constant"));
  EXPECT_EQ(evaluate(result.roots[0], {}).item<float>(), 6);
}

/// Returns all small ops and "spread", which makes a vector of `elements` elements and must not
/// run.
OpRegistry with_spread(std::int64_t elements) {
  OpRegistry ops = small_ops::all();
  ops.add(small_ops::make(
      "spread",
      [elements](const OpInputs&) -> std::vector<ValueType> {
        return {{DType::kFloat32, Shape{elements}}};
      },
      [](const Node&, const KernelCall&) { FAIL() << "was folded"; }));
  return ops;
}

TEST_F(RewriteTest, FoldsNothingWithoutAnEvaluatorAndNothingThatWouldGrow) {
  const Value one = graph_.constant(Tensor::scalar(1.0f));
  const Value root = scale(one, 3);
  const RewrittenGraph plain = rewrite(graph_, {&root, 1}, true, {}, nullptr);
  EXPECT_THAT(op_names(plain), ElementsAre("constant", "scale"));
  // 4 bytes would become 4 MB.
  const OpRegistry ops = with_spread(1 << 20);
  Graph large(ops);
  const Value wide = large.apply("spread", {large.constant(Tensor::scalar(1.0f))});
  const RewrittenGraph kept = rewrite(large, {&wide, 1}, true, {}, &evaluator_);
  EXPECT_THAT(op_names(kept), ElementsAre("constant", "spread"));
}

// The size of the result, 2^64 bytes, must not wrap around to 0.
TEST_F(RewriteTest, WhatNoMemoryHoldsIsNotFolded) {
  const OpRegistry ops = with_spread(std::int64_t{1} << 62);
  Graph large(ops);
  const Value wide = large.apply("spread", {large.constant(Tensor::scalar(1.0f))});
  EXPECT_THAT(error_of([&] {
                rewrite(large, {&wide, 1}, true, {}, &evaluator_);
              }),
              HasSubstr("more bytes than memory has addresses"));
}

TEST_F(RewriteTest, MergesEqualNodes) {
  const Value a = scale(x_, 2), b = scale(x_, 2), c = scale(x_, 3);
  const Value left = apply("add", {a, c}), right = apply("add", {b, c});
  const RewrittenGraph result = rewritten({left, right, a}, {.fuse = false});
  EXPECT_THAT(op_names(result), ElementsAre("input", "scale", "scale", "add"));
  EXPECT_EQ(result.roots[0], result.roots[1]);
  expect_same_values({left, right, a}, result);
}

TEST_F(RewriteTest, MergesConstantsBitForBit) {
  const auto constant = [&](float value) { return graph_.constant(Tensor::scalar(value)); };
  const std::vector<Value> roots = {constant(0.0f), constant(0.0f), constant(-0.0f)};
  const RewrittenGraph result = rewritten(roots);
  EXPECT_EQ(result.roots[0], result.roots[1]);
  EXPECT_NE(result.roots[0], result.roots[2]);
}

TEST_F(RewriteTest, NeverMergesWhatIsRandomOrFed) {
  const Attributes attributes = {{"shape", small_ops::Items{2, 2}}, {"dtype", DType::kFloat32}};
  const Value a = apply("random", {}, attributes), b = apply("random", {}, attributes);
  const Value other = graph_.input("other", {2, 2});
  const std::vector<Value> roots = {a, b, x_, other};
  const RewrittenGraph result = rewritten(roots);
  EXPECT_EQ(result.graph->nodes().size(), 4U);
  EXPECT_EQ(result.roots[0].name(), a.name());
  EXPECT_EQ(result.roots[1].name(), b.name());
}

TEST_F(RewriteTest, KeepsSecondOutputsApart) {
  const Node& twins = graph_.add("twins", {&x_, 1});
  const Node& again = graph_.add("twins", {&x_, 1});
  const std::vector<Value> roots = {twins.output(1), again.output(1), again.output(0)};
  const RewrittenGraph result = rewritten(roots);
  EXPECT_EQ(result.roots[0], result.roots[1]);
  EXPECT_EQ(result.roots[0].output(), 1);
  EXPECT_EQ(result.roots[2].output(), 0);
  expect_same_values(roots, result);
}

}  // namespace
}  // namespace paceline
