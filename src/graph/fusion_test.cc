#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/fused_program.h"
#include "graph/passes.h"
#include "graph/testing/small_ops.h"

namespace paceline {
namespace {

using small_ops::evaluate;
using small_ops::floats;
using testing::ElementsAre;

class FusionTest : public testing::Test {
 protected:
  Value apply(const std::string& op, std::initializer_list<Value> inputs,
              Attributes attributes = {}) {
    return graph_.apply(op, inputs, std::move(attributes));
  }
  Value scale(Value x, double factor) { return apply("scale", {x}, {{"factor", factor}}); }
  /// Fuses, and checks that the roots keep their values bit for bit.
  RewrittenGraph fused(std::vector<Value> roots) {
    RewrittenGraph result = rewrite(graph_, roots, true, {}, nullptr);
    for (std::size_t i = 0; i < roots.size(); ++i) {
      EXPECT_EQ(result.roots[i].type(), roots[i].type());
      EXPECT_EQ(floats(evaluate(result.roots[i], feeds_)), floats(evaluate(roots[i], feeds_)));
    }
    return result;
  }
  static std::vector<std::string> op_names(const RewrittenGraph& result) {
    std::vector<std::string> names;
    for (const auto& node : result.graph->nodes()) names.push_back(node->op().name);
    return names;
  }
  static std::string program_of(Value value) {
    return value.node().attributes().get<std::string>("program");
  }

  OpRegistry ops_ = small_ops::all();
  Graph graph_{ops_};
  small_ops::Feeds feeds_ = {{"x", Tensor::of<float>({2, 2}, {1, -2, 0.3f, 4})},
                             {"y", Tensor::of<float>({2, 2}, {0.1f, 2, -3, 7})},
                             {"b", Tensor::of<float>({2}, {0.5f, -1})},
                             {"s", Tensor::of<float>({1}, {0.7f})},
                             {"state", Tensor::of<float>({2, 2}, {1, 2, 3, 4})}};
  Value x_ = graph_.input("x", {2, 2}), y_ = graph_.input("y", {2, 2});
  Value b_ = graph_.variable("b", {2}), s_ = graph_.input("s", {1});
};

TEST_F(FusionTest, BiasAndActivationBecomeOne) {
  const Value relu = graph_.apply("relu", {apply("bias", {x_, b_})}, {}, "layer/relu");
  const RewrittenGraph result = fused({relu});
  EXPECT_THAT(op_names(result), ElementsAre("input", "variable", "bias_activation"));
  const Node& node = result.roots[0].node();
  EXPECT_EQ(node.name(), "layer/relu");
  EXPECT_EQ(node.attributes().get<std::string>("activation"), "relu");
}

TEST_F(FusionTest, TheSlopeOfALeakyReluIsKept) {
  const Value leaky = apply("leaky_relu", {apply("bias", {x_, b_})}, {{"slope", 0.1}});
  EXPECT_EQ(fused({leaky}).roots[0].node().attributes().get<double>("slope"), 0.1);
}

TEST_F(FusionTest, ABiasThatIsReadElsewhereStays) {
  const Value biased = apply("bias", {x_, b_});
  const Value relu = apply("relu", {biased});
  EXPECT_THAT(op_names(fused({relu, biased})), ElementsAre("input", "variable", "bias", "relu"));
  const Value also = apply("twins", {biased});
  EXPECT_THAT(op_names(fused({relu, also})),
              ElementsAre("input", "variable", "bias", "relu", "twins"));
}

TEST_F(FusionTest, ABiasThatBecomesAStateStays) {
  const Value state = graph_.local("state", {2, 2});
  const Value biased = apply("bias", {x_, b_});
  graph_.assign(state, biased);
  const RewrittenGraph result = fused({apply("relu", {biased})});
  EXPECT_EQ(result.roots[0].node().op().name, "relu");
}

TEST_F(FusionTest, AChainBecomesOneProgram) {
  const Value root = apply("relu", {scale(apply("add", {x_, y_}), 0.1)});
  const RewrittenGraph result = fused({root});
  EXPECT_THAT(op_names(result), ElementsAre("input", "input", "fused_elementwise"));
  EXPECT_EQ(program_of(result.roots[0]), "add i0 i1\nscale t0 0.10000000000000001\nrelu t1\n");
  EXPECT_EQ(result.roots[0].name(), root.name());
}

TEST_F(FusionTest, ATreeIsOneProgramAndEqualOperandsAreOneInput) {
  const Value left = scale(x_, 2), right = apply("mul", {x_, y_});
  const Value root = apply("add", {left, apply("square", {right})});
  const RewrittenGraph result = fused({root});
  EXPECT_EQ(program_of(result.roots[0]), "scale i0 2\nmul i0 i1\nsquare t1\nadd t0 t2\n");
  EXPECT_EQ(result.roots[0].node().inputs().size(), 2U);
}

TEST_F(FusionTest, OneReaderMayReadTwice) {
  const Value twice = scale(x_, 2);
  EXPECT_EQ(program_of(fused({apply("mul", {twice, twice})}).roots[0]), "scale i0 2\nmul t0 t0\n");
}

TEST_F(FusionTest, AResultThatIsReadByTwoIsComputedOnce) {
  const Value shared = scale(x_, 2);
  const Value a = apply("relu", {scale(shared, 3)}), b = apply("square", {scale(shared, 5)});
  EXPECT_THAT(op_names(fused({a, b})),
              ElementsAre("input", "scale", "fused_elementwise", "fused_elementwise"));
}

TEST_F(FusionTest, RootsInsideAChainStayValues) {
  const Value inner = scale(x_, 2);
  const Value root = apply("relu", {inner});
  EXPECT_THAT(op_names(fused({root, inner})), ElementsAre("input", "scale", "relu"));
}

TEST_F(FusionTest, ScalarsAreOperandsAndTheirOwnStepsStayOutside) {
  const Value root = apply("relu", {apply("mul", {x_, scale(s_, 3)})});
  const RewrittenGraph result = fused({root});
  EXPECT_THAT(op_names(result), ElementsAre("input", "input", "scale", "fused_elementwise"));
  EXPECT_EQ(program_of(result.roots[0]), "mul i0 i1\nrelu t0\n");
}

TEST_F(FusionTest, OtherBroadcastingIsNotFused) {
  OpRegistry ops = small_ops::all();
  Graph graph(ops);
  // The op "sub" of this test takes operands of two shapes: a matrix and a row.
  ops.add(small_ops::make("sub", small_ops::infer_wider, {}));
  const Value row = graph.input("row", {4}), x = graph.input("x", {2, 4});
  const Value root = graph.apply("relu", {graph.apply("sub", {x, row})});
  EXPECT_THAT(op_names(rewrite(graph, {&root, 1}, true, {}, nullptr)),
              ElementsAre("input", "input", "sub", "relu"));
}

TEST_F(FusionTest, OnlyTheFloatsThatKernelsComputeInAreFused) {
  const Value half = graph_.input("half", {2}, DType::kFloat16);
  const Value root = graph_.apply("relu", {scale(half, 2)});
  EXPECT_THAT(op_names(rewrite(graph_, {&root, 1}, true, {}, nullptr)),
              ElementsAre("input", "scale", "relu"));
}

TEST_F(FusionTest, ALongChainBecomesSeveralPrograms) {
  Value value = x_;
  for (int i = 0; i < 80; ++i) value = apply("tanh", {value});
  const RewrittenGraph result = fused({value});
  EXPECT_THAT(op_names(result),
              ElementsAre("input", "fused_elementwise", "fused_elementwise", "fused_elementwise"));
  EXPECT_EQ(parse_fused_program(program_of(result.roots[0])).size(), 32U);
}

TEST_F(FusionTest, WithoutTheFusedOpsNothingIsFused) {
  OpRegistry ops;
  small_ops::add_sources(ops);
  small_ops::add_elementwise(ops);
  Graph graph(ops);
  const Value x = graph.input("x", {2});
  const Value root = graph.apply("relu", {graph.apply("tanh", {x})});
  EXPECT_THAT(op_names(rewrite(graph, {&root, 1}, true, {}, nullptr)),
              ElementsAre("input", "tanh", "relu"));
}

}  // namespace
}  // namespace paceline
