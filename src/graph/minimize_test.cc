#include "paceline/minimize.h"

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

class MinimizeTest : public testing::Test {
 protected:
  MinimizeTest() {
    const Value rows = graph_.apply("embedding_lookup", {table_, ids_});
    const Value used = graph_.apply("mul", {rows, weights_});
    loss_ = graph_.apply("reduce_sum", {graph_.apply("add", {used, biases_})});
  }

  std::vector<std::string> updated(const Training& training) {
    std::vector<std::string> names;
    for (const VariableUpdate& update : training.updates) names.push_back(update.variable.name());
    return names;
  }
  void expect_error(const MinimizeOptions& options, const std::string& message) {
    EXPECT_THAT(error_of(ErrorCode::kInvalidArgument, [&] { minimize(loss_, Sgd{}, options); }),
                HasSubstr(message));
  }

  OpRegistry ops_ = small_ops::all();
  Graph graph_{ops_};
  Value biases_ = graph_.variable("layer1/b", {2, 2});
  Value weights_ = graph_.variable("layer1/w", {2, 2});
  Value table_ = graph_.variable("embedding", {5, 2});
  Value unused_ = graph_.variable("unused", {2});
  Value ids_ = graph_.input("ids", {2}, DType::kInt32);
  Value loss_;
  small_ops::Feeds feeds_ = {{"layer1/b", Tensor::of<float>({2, 2}, {1, 2, 3, 4})},
                             {"layer1/w", Tensor::of<float>({2, 2}, {1, 1, 2, 2})},
                             {"embedding", Tensor(DType::kFloat32, {5, 2})},
                             {"ids", Tensor::of<std::int32_t>({2}, {1, 1})}};
};

TEST_F(MinimizeTest, UpdatesWhatTheLossDependsOnInTheOrderInWhichItWasMade) {
  const Training training = minimize(loss_, Adam{.learning_rate = 0.5f});
  EXPECT_THAT(updated(training), ElementsAre("layer1/b", "layer1/w", "embedding"));
  EXPECT_EQ(training.loss, loss_);
  EXPECT_EQ(&training.graph(), &graph_);
  EXPECT_FALSE(training.global_norm);
  EXPECT_EQ(training.clip_norm, 0);
  for (const VariableUpdate& update : training.updates) {
    EXPECT_EQ(update.rule, Rule(Adam{.learning_rate = 0.5f}));
    EXPECT_EQ(update.weight_decay, 0);
  }
  EXPECT_THAT(floats(evaluate(training.updates[0].contribution.dense, feeds_)),
              ElementsAre(1, 1, 1, 1));
}

TEST_F(MinimizeTest, RowsAreSummedBeforeTheyLeave) {
  const VariableUpdate update = minimize(loss_, Sgd{}).updates[2];
  ASSERT_TRUE(update.contribution.sparse());
  const Node& sums = update.contribution.rows.node();
  EXPECT_EQ(sums.op().name, "sum_rows");
  EXPECT_EQ(sums.attributes().get<std::int64_t>("table_rows"), 5);
  EXPECT_EQ(update.contribution.ids, sums.output(0));
  EXPECT_EQ(update.contribution.rows, sums.output(1));
  EXPECT_EQ(update.row_count, sums.output(2));
}

TEST_F(MinimizeTest, TheLongestPrefixDecides) {
  MinimizeOptions options;
  options.learning_rate = Schedule::constant(0.5);
  options.groups = {{.prefix = "", .rule = Momentum{}},
                    {.prefix = "layer1/w", .learning_rate = Schedule::constant(0.25)},
                    {.prefix = "layer1/", .rule = Adagrad{}}};
  const Training training = minimize(loss_, Sgd{}, options);
  EXPECT_EQ(training.updates[0].rule, Rule(Adagrad{}));
  EXPECT_EQ(training.updates[0].learning_rate.at(0), 0.5);
  EXPECT_EQ(training.updates[1].rule, Rule(Sgd{}));
  EXPECT_EQ(training.updates[1].learning_rate.at(0), 0.25);
  EXPECT_EQ(training.updates[2].rule, Rule(Momentum{}));
}

TEST_F(MinimizeTest, FrozenVariablesGetNoUpdate) {
  MinimizeOptions options;
  options.groups = {{.prefix = "layer1/", .frozen = true}};
  EXPECT_THAT(updated(minimize(loss_, Sgd{}, options)), ElementsAre("embedding"));
  options.groups = {{.prefix = "", .frozen = true}};
  expect_error(options, "all variables of 'reduce_sum' are frozen");
}

TEST_F(MinimizeTest, WeightDecayIsReportedButNotDifferentiated) {
  MinimizeOptions options;
  options.groups = {{.prefix = "layer1/w", .weight_decay = 0.5f}};
  const Training training = minimize(loss_, Sgd{}, options);
  EXPECT_EQ(training.updates[1].weight_decay, 0.5f);
  EXPECT_EQ(training.updates[0].weight_decay, 0);
  const float plain = evaluate(loss_, feeds_).item<float>();
  EXPECT_FLOAT_EQ(evaluate(training.loss, feeds_).item<float>(), plain + 0.5f * 0.5f * 10);
  // The table is all zeros, so the gradient of the loss without weight decay is zero, too.
  EXPECT_THAT(floats(evaluate(training.updates[1].contribution.dense, feeds_)),
              ElementsAre(0, 0, 0, 0));
}

TEST_F(MinimizeTest, AGroupHasItsOwnAverageDecayOrThatOfAll) {
  MinimizeOptions options;
  options.average_decay = 0.99f;
  options.groups = {{.prefix = "layer1/b", .average_decay = 0.0f}};
  const Training training = minimize(loss_, Sgd{}, options);
  for (const VariableUpdate& update : training.updates) {
    const bool averaged = update.variable.node().name() != "layer1/b";
    EXPECT_EQ(update.average_decay, averaged ? 0.99f : 0) << update.variable.node().name();
  }
}

TEST_F(MinimizeTest, ClippingAsksForTheNormOfAllContributions) {
  MinimizeOptions options;
  options.clip_norm = 5;
  const Training training = minimize(loss_, Sgd{}, options);
  EXPECT_EQ(training.clip_norm, 5);
  const Node& norm = training.global_norm.node();
  EXPECT_EQ(norm.op().name, "global_norm");
  EXPECT_THAT(norm.inputs(), ElementsAre(training.updates[0].contribution.dense,
                                         training.updates[1].contribution.dense,
                                         training.updates[2].contribution.rows));
}

TEST_F(MinimizeTest, ClipsGradientsByValueAVariableOrAll) {
  MinimizeOptions options;
  options.clip_value = 0.75f;
  options.clip_norm = 5;
  options.groups = {{.prefix = "layer1/w", .clip_value = 0.0f},
                    {.prefix = "embedding", .clip_value = 2.5f}};
  const Training training = minimize(loss_, Sgd{}, options);
  EXPECT_THAT(floats(evaluate(training.updates[0].contribution.dense, feeds_)),
              ElementsAre(0.75f, 0.75f, 0.75f, 0.75f));
  EXPECT_NE(training.updates[1].contribution.dense.node().op().name, "minimum");
  // Row 1 of the table is read twice: its gradient is 1 + 2 in both columns.
  const Gradient& rows = training.updates[2].contribution;
  ASSERT_TRUE(rows.sparse());
  EXPECT_EQ(rows.rows.node().op().name, "minimum");
  EXPECT_EQ(rows.rows.node().input(0).node().input(0).node().op().name, "sum_rows");
  EXPECT_THAT(training.global_norm.node().inputs(),
              ElementsAre(training.updates[0].contribution.dense,
                          training.updates[1].contribution.dense, rows.rows));
}

TEST_F(MinimizeTest, GradientsThatTheGraphHasAreTrainedWithAsTheyAre) {
  const Training derived = minimize(loss_, Sgd{});
  std::vector<VariableUpdate> given = derived.updates;
  MinimizeOptions options;
  options.clip_norm = 5;
  options.groups = {{.prefix = "layer1/w", .rule = Adam{}, .weight_decay = 0.5f, .clip_value = 1}};
  const Training training = train_with(loss_, given, Momentum{}, options);
  EXPECT_EQ(training.loss, loss_) << "without a term of the weight decay";
  ASSERT_EQ(training.updates.size(), given.size());
  EXPECT_EQ(training.updates[0].rule, Rule(Momentum{}));
  EXPECT_EQ(training.updates[0].contribution.dense, given[0].contribution.dense);
  EXPECT_EQ(training.updates[1].rule, Rule(Adam{}));
  EXPECT_EQ(training.updates[1].weight_decay, 0.5f);
  EXPECT_EQ(training.updates[1].contribution.dense.node().op().name, "minimum");
  EXPECT_EQ(training.updates[2].contribution.rows, given[2].contribution.rows) << "summed before";
  EXPECT_EQ(training.global_norm.node().inputs().size(), 3U);
  EXPECT_THROW(train_with(loss_, {}, Sgd{}), Error);
}

TEST_F(MinimizeTest, DeclaredContributionsFollowTheGradientsAndAreNotClipped) {
  const Value statistic = graph_.variable("statistic", {2, 2});
  const Value of_rows = loss_.node().input(0).node().input(0);
  graph_.contribute(statistic, of_rows, Ema{.decay = 0.75f});
  MinimizeOptions options;
  options.clip_norm = 5;
  options.clip_value = 0.1f;
  options.average_decay = 0.5f;
  const Training training = minimize(loss_, Sgd{}, options);
  ASSERT_THAT(updated(training), ElementsAre("layer1/b", "layer1/w", "embedding", "statistic"));
  const VariableUpdate& update = training.updates[3];
  EXPECT_EQ(update.contribution.dense, of_rows);
  EXPECT_EQ(update.rule, Rule(Ema{.decay = 0.75f}));
  EXPECT_EQ(update.average_decay, 0);
  EXPECT_EQ(training.global_norm.node().inputs().size(), 3u);
  options.groups = {{.prefix = "statistic", .frozen = true}};
  EXPECT_EQ(minimize(loss_, Sgd{}, options).updates.size(), 3u);
}

TEST_F(MinimizeTest, DeclaredContributionsOfOtherLossesAreLeftOut) {
  graph_.contribute(graph_.variable("statistic", {2, 2}), graph_.apply("add", {loss_, biases_}),
                    Assign{});
  EXPECT_EQ(minimize(loss_, Sgd{}).updates.size(), 3u);
}

TEST_F(MinimizeTest, ALossMayNotDependOnWhatIsContributedTo) {
  graph_.contribute(biases_, loss_.node().input(0), Assign{});
  expect_error({}, "'reduce_sum' depends on 'layer1/b', which Graph::contribute updates");
}

TEST_F(MinimizeTest, RefusesWhatCannotBe) {
  MinimizeOptions options;
  options.clip_norm = -1;
  expect_error(options, "[minimize] clip_norm is -1");
  options = {};
  options.clip_value = -1;
  expect_error(options, "[minimize] clip_value is -1: it must be at least 0, which is none");
  options = {};
  options.groups = {{.prefix = "layer1", .clip_value = -2.0f}};
  expect_error(options, "[minimize] clip_value of group 'layer1' is -2");
  options.groups = {{.prefix = "layer2/w"}};
  expect_error(options, "begins with 'layer2/w'; did you mean 'layer1/w'?");
  options.groups = {{.prefix = "layer1", .weight_decay = -1}};
  expect_error(options, "weight decay of group 'layer1' is -1");
  options.groups = {{.prefix = "layer1", .average_decay = 1.0f}};
  expect_error(options, "average decay of group 'layer1' is 1: it must be at least 0 and below 1");
}

TEST_F(MinimizeTest, ALossWithoutVariablesIsRefused) {
  const Value x = graph_.input("x", {});
  EXPECT_THROW(minimize(x, Sgd{}), Error);
  EXPECT_THROW(minimize(Value(), Sgd{}), Error);
}

}  // namespace
}  // namespace paceline
