#include "paceline/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/error_of.h"
#include "graph/initializer_of.h"
#include "graph/testing/small_ops.h"
#include "paceline/error.h"
#include "paceline/rule.h"

namespace paceline {
namespace {

using testing::HasSubstr;

class GraphTest : public testing::Test {
 protected:
  template <typename F>
  void expect_error(ErrorCode code, const std::string& message, F f) {
    EXPECT_THAT(error_of(code, f), HasSubstr(message));
  }

  OpRegistry ops_ = small_ops::all();
  Graph graph_{ops_};
};

TEST_F(GraphTest, InfersShapesWhenANodeIsAdded) {
  const Value x = graph_.input("x", {3, 4});
  const Value y = graph_.apply("relu", {x});
  EXPECT_EQ(y.shape(), (Shape{3, 4}));
  EXPECT_EQ(y.type().str(), "float32 (3,4)");
  EXPECT_EQ(y.node().input(0), x);
  EXPECT_EQ(&y.graph(), &graph_);
  EXPECT_LT(x.node().id(), y.node().id());
}

TEST_F(GraphTest, AnErrorNamesTheOpAndTheShapes) {
  const Value a = graph_.input("a", {3, 4}), b = graph_.input("b", {5, 6});
  expect_error(ErrorCode::kInvalidArgument, "[add] cannot add float32 (3,4) and float32 (5,6)",
               [&] {
                 graph_.apply("add", {a, b});
               });
  expect_error(ErrorCode::kInvalidArgument, "[add] takes 2 inputs, was given 1",
               [&] { graph_.apply("add", {a}); });
  EXPECT_EQ(graph_.nodes().size(), 2U);
}

TEST_F(GraphTest, AnUnknownOpGetsTheNearest) {
  const Value x = graph_.input("x", {});
  expect_error(ErrorCode::kNotFound, "[rleu] there is no such op; did you mean 'relu'?",
               [&] { graph_.apply("rleu", {x}); });
}

TEST_F(GraphTest, InputsMustBeValuesOfThisGraph) {
  Graph other(ops_);
  const Value x = other.input("x", {2});
  expect_error(ErrorCode::kInvalidArgument, "input 0, 'x', is of another graph",
               [&] { graph_.apply("relu", {x}); });
  expect_error(ErrorCode::kInvalidArgument, "[relu] input 0 is no value",
               [&] { graph_.apply("relu", {Value()}); });
}

TEST_F(GraphTest, ADefaultMadeValueIsRefusedWhereverItIsUsed) {
  const Value none;
  for (const auto& use : std::vector<std::function<void()>>{
           [&] { none.graph(); }, [&] { none.shape(); }, [&] { none.name(); }}) {
    EXPECT_THROW(use(), Error);
  }
}

TEST_F(GraphTest, NodesGetUniqueNamesInTheirScopes) {
  const Value x = graph_.input("x", {2});
  EXPECT_EQ(graph_.apply("relu", {x}).name(), "relu");
  EXPECT_EQ(graph_.apply("relu", {x}).name(), "relu_1");
  EXPECT_EQ(graph_.apply("relu", {x}, {}, "hidden").name(), "hidden");
  EXPECT_EQ(graph_.apply("relu", {x}, {}, "relu_2").name(), "relu_2");
  EXPECT_EQ(graph_.apply("relu", {x}).name(), "relu_3");
  const auto outer = graph_.scope("layer1");
  EXPECT_EQ(graph_.apply("relu", {x}).name(), "layer1/relu");
  {
    const auto inner = graph_.scope("cell");
    EXPECT_EQ(graph_.variable("w", {2}).name(), "layer1/cell/w");
  }
  EXPECT_EQ(graph_.apply("relu", {x}).name(), "layer1/relu_1");
}

TEST_F(GraphTest, OutputsBeyondTheFirstAreNumbered) {
  const Value x = graph_.input("x", {2});
  const Node& twins = graph_.add("twins", {&x, 1});
  EXPECT_EQ(twins.output(0).name(), "twins");
  EXPECT_EQ(twins.output(1).name(), "twins:1");
  EXPECT_EQ(graph_.find("twins:1"), twins.output(1));
  expect_error(ErrorCode::kNotFound, "twins:2", [&] { (void)graph_.find("twins:2"); });
}

TEST_F(GraphTest, AVariableAskedForTwiceIsTheSame) {
  const Value w = graph_.variable("w", {2, 3}, Initializer::glorot_uniform());
  EXPECT_EQ(graph_.variable("w", {2, 3}), w);
  EXPECT_EQ(initializer_of(w.node()), Initializer::glorot_uniform());
  expect_error(ErrorCode::kInvalidArgument,
               "[variable] 'w' is float32 (2,3), asked for as float32 (3,2)", [&] {
                 graph_.variable("w", {3, 2});
               });
}

TEST_F(GraphTest, KeepsInitializers) {
  for (const Initializer& initializer :
       {Initializer::constant(0.1f), Initializer::uniform(-1, 2), Initializer::normal(3, 0.5f),
        Initializer::truncated_normal(0, 0.05f)}) {
    Graph graph(ops_);
    EXPECT_EQ(initializer_of(graph.variable("w", {2}, initializer).node()), initializer);
  }
  expect_error(ErrorCode::kInvalidArgument, "[variable] 'u' cannot begin with low 1 and high -1",
               [&] { graph_.variable("u", {2}, Initializer::uniform(1, -1)); });
  expect_error(ErrorCode::kInvalidArgument, "deviation -1",
               [&] { graph_.variable("n", {2}, Initializer::normal(0, -1)); });
}

TEST_F(GraphTest, GivenValuesHaveTheShapeOfTheirVariable) {
  const Initializer given = Initializer::values(Tensor::of<float>({2}, {3, 4}));
  EXPECT_EQ(initializer_of(graph_.variable("w", {2}, given).node()), given);
  expect_error(ErrorCode::kInvalidArgument,
               "[variable] 'v', float32 (3), cannot begin with values of float32 (2)",
               [&] { graph_.variable("v", {3}, given); });
  expect_error(ErrorCode::kInvalidArgument, "cannot begin with values of nothing",
               [&] { graph_.variable("n", {2}, Initializer::values({})); });
}

TEST_F(GraphTest, InputsAndLocalsHaveNamesOfTheirOwn) {
  graph_.input("x", {2});
  expect_error(ErrorCode::kInvalidArgument, "[input] the name 'x' is taken",
               [&] { graph_.input("x", {2}); });
  expect_error(ErrorCode::kInvalidArgument, "[variable] the name 'x' is taken",
               [&] { graph_.variable("x", {2}); });
  expect_error(ErrorCode::kInvalidArgument, "[local] the name is empty",
               [&] { graph_.local("", {2}); });
}

TEST_F(GraphTest, NamesValuesForThoseWhoAsk) {
  const Value x = graph_.input("x", {2});
  const Value y = graph_.apply("relu", {x});
  EXPECT_EQ(graph_.named("predictions", y), y);
  EXPECT_EQ(graph_.find("predictions"), y);
  EXPECT_EQ(graph_.find("x"), x);
  EXPECT_EQ(graph_.find("relu"), y);
  expect_error(ErrorCode::kInvalidArgument, "'predictions' is taken",
               [&] { graph_.named("predictions", x); });
  expect_error(ErrorCode::kInvalidArgument, "'x' is taken", [&] { graph_.named("x", y); });
  expect_error(ErrorCode::kInvalidArgument, "no value", [&] { graph_.named("none", Value()); });
  expect_error(ErrorCode::kNotFound, "'prediction'; did you mean 'predictions'?",
               [&] { (void)graph_.find("prediction"); });
}

TEST_F(GraphTest, AssignsLocalsOnceAndOfOneType) {
  const Value state = graph_.local("state", {2}), x = graph_.input("x", {2});
  graph_.assign(state, x);
  ASSERT_EQ(graph_.assignments().size(), 1U);
  EXPECT_EQ(graph_.assignments()[0].local, state);
  EXPECT_EQ(graph_.assignments()[0].value, x);
  expect_error(ErrorCode::kInvalidArgument, "'state' is assigned twice",
               [&] { graph_.assign(state, x); });
  expect_error(ErrorCode::kInvalidArgument, "'x' is no local", [&] { graph_.assign(x, state); });
  const Value other = graph_.local("other", {3});
  expect_error(ErrorCode::kInvalidArgument, "'other' is float32 (3), 'x' is float32 (2)",
               [&] { graph_.assign(other, x); });
}

TEST_F(GraphTest, ContributionsAreForVariablesOfTheirType) {
  const Value w = graph_.variable("w", {3}), x = graph_.input("x", {3});
  const auto message_of = [&](Value variable, Value value) {
    return error_of(ErrorCode::kInvalidArgument,
                    [&] { graph_.contribute(variable, value, Assign{}); });
  };
  EXPECT_EQ(message_of(x, w), "[contribute] 'x' is no variable");
  EXPECT_EQ(message_of(w, graph_.input("y", {4})),
            "[contribute] 'w' is float32 (3), 'y' is float32 (4)");
  graph_.contribute(w, x, Assign{});
  EXPECT_EQ(message_of(w, x), "[contribute] 'w' is given two values");
  EXPECT_EQ(graph_.contributions().size(), 1u);
}

TEST_F(GraphTest, ConstantsKeepTheirValue) {
  const Value c = graph_.constant(Tensor::of<float>({2}, {1, 2}));
  EXPECT_EQ(c.shape(), (Shape{2}));
  EXPECT_EQ(c.node().attributes().get<Tensor>("value").data<float>()[1], 2);
  EXPECT_THROW(graph_.constant(Tensor()), Error);
}

TEST_F(GraphTest, AttributesSayWhatIsMissing) {
  const Attributes attributes = {{"factor", 2.0}, {"axis", std::int64_t{1}}};
  EXPECT_EQ(attributes.get<double>("factor"), 2.0);
  EXPECT_EQ(attributes.get<std::int64_t>("axis"), 1);
  expect_error(ErrorCode::kInvalidArgument, "'factors' is missing; did you mean 'factor'?",
               [&] { attributes.get<double>("factors"); });
  expect_error(ErrorCode::kInvalidArgument, "'axis' has another type",
               [&] { attributes.get<double>("axis"); });
}

TEST_F(GraphTest, PrintsItselfWithShapesAndCosts) {
  const Value x = graph_.input("x", {50, 100});
  const Value y = graph_.apply("relu", {x}, {}, "layer1/relu");
  const Value h = graph_.local("h", {50, 100});
  graph_.assign(h, y);
  graph_.named("hidden", y);
  const std::string text = graph_.text();
  EXPECT_THAT(text, HasSubstr("layer1/relu = relu(x): float32 (50,100); 5.0 kFLOP, 4 B\n"));
  EXPECT_THAT(text, HasSubstr("h <- layer1/relu\n"));
  EXPECT_THAT(text, HasSubstr("'hidden' is layer1/relu\n"));
  EXPECT_THAT(text, HasSubstr("3 nodes: 15.0 kFLOP, 12 B\n"));
}

TEST_F(GraphTest, PrintsItselfForGraphviz) {
  const Value x = graph_.input("say \"x\"", {2});
  const Value y = graph_.apply("relu", {x});
  const Value h = graph_.local("h", {2});
  graph_.assign(h, y);
  const std::string dot = graph_.dot();
  EXPECT_THAT(dot, testing::StartsWith("digraph paceline {"));
  EXPECT_THAT(dot, HasSubstr("label=\"say \\\"x\\\"\\ninput: float32 (2)\\n2 FLOP, 4 B\""));
  EXPECT_THAT(dot, HasSubstr("n0 -> n1 [label=\"(2)\"];"));
  EXPECT_THAT(dot, HasSubstr("n1 -> n2 [style=dashed, label=\"assign\"];"));
  EXPECT_THAT(dot, testing::EndsWith("}\n"));
}

TEST(Attributes, ACopyThatIsChangedLeavesTheOtherAsItIs) {
  const Attributes before = {{"rows", std::int64_t{3}}};
  Attributes after = before;
  after.set("rows", std::int64_t{4});
  after.set("keep", true);
  EXPECT_EQ(before.get<std::int64_t>("rows"), 3);
  EXPECT_FALSE(before.has("keep"));
  EXPECT_EQ(after.get<std::int64_t>("rows"), 4);
  Attributes none;
  EXPECT_TRUE(none.items().empty());
  none.set("keep", true);
  EXPECT_FALSE(Attributes().has("keep"));
}

}  // namespace
}  // namespace paceline
