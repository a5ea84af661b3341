#include "bench/step_work.h"

#include <gmock/gmock.h>

#include "bench/roof.h"
#include "models/mlp.h"
#include "paceline/ops.h"
#include "predict/worker_step_cost.h"

namespace paceline::bench {
namespace {

models::StepGraph one_product(const Rule& rule) {
  models::StepGraph step;
  step.graph = std::make_unique<Graph>();
  const Value x = step.graph->input("x", {8, 4});
  const Value y = step.graph->input("y", {8, 3});
  const Value w = step.graph->variable("w", {4, 3});
  step.training = minimize(mean_squared_error(matmul(x, w), y), rule);
  return step;
}

// x·w and its gradient by w take 2·8·4·3 FLOPs each. The error takes 3 per element forwards and 2
// backwards.
TEST(StepWork, CountsTheFlopsOfForwardAndBackwardOps) {
  EXPECT_EQ(step_work(one_product(Sgd{})).flops(), 2 * (2 * 8 * 4 * 3) + (3 + 2) * 8 * 3);
}

TEST(StepWork, CountsVariablesSlotsAndGradientsOfTheRule) {
  const StepCost sgd = step_work(one_product(Sgd{}));
  EXPECT_EQ(sgd.rule_bytes, 12 * (2 + 1) * 4);
  EXPECT_EQ(sgd.slots, 0);
  const StepCost adam = step_work(one_product(Adam{}));
  EXPECT_EQ(adam.rule_bytes, 12 * (2 + 2 + 2 + 1) * 4);
  EXPECT_EQ(adam.variables, 12 * 4);
  EXPECT_EQ(adam.slots, 2 * 12 * 4 + 8);  // the slots m and v, and t, which is one int64
  EXPECT_EQ(adam.gradients, 12 * 4);
  EXPECT_EQ(adam.link_bytes_in, 12 * 4);
  EXPECT_EQ(adam.link_bytes_out, 12 * 4);
  EXPECT_GE(adam.activations, (8 * 4 + 2 * 8 * 3) * 4);
}

// A model with a gradient of 4 million elements, which the cpu computes in panels.
models::StepGraph large_product() {
  models::StepGraph step;
  step.graph = std::make_unique<Graph>();
  const Value x = step.graph->input("x", {8, 2048});
  const Value y = step.graph->input("y", {8, 2048});
  const Value w = step.graph->variable("w", {2048, 2048});
  step.training = minimize(mean_squared_error(matmul(x, w), y), Adam{});
  return step;
}

TEST(StepWork, AGradientThatIsAppliedWhileItIsComputedIsNeitherHeldNorRead) {
  constexpr double kElements = 2048 * 2048;
  const models::StepGraph step = large_product();
  Cluster alone;
  alone.threads = 2;
  RunOptions whole;
  whole.fused_update = false;
  const StepCost fused = paceline::step_work(request_of(step), alone, {});
  const StepCost apart = paceline::step_work(request_of(step), alone, whole);
  EXPECT_EQ(apart.gradients, kElements * 4);
  EXPECT_EQ(apart.rule_bytes, kElements * (2 + 2 + 2 + 1) * 4);
  EXPECT_EQ(fused.gradients, 0);
  EXPECT_EQ(fused.rule_bytes, kElements * (2 + 2 + 2) * 4);
  const auto op_bytes = [](const StepCost& work) {
    double sum = 0;
    for (const Cost& cost : work.ops) sum += cost.bytes;
    return sum;
  };
  EXPECT_EQ(op_bytes(fused), op_bytes(apart) - kElements * 4);
  EXPECT_EQ(fused.flops(), apart.flops());
}

TEST(StepWork, AParameterServerGetsGradientsWhole) {
  const models::StepGraph step = large_product();
  Cluster cluster;
  cluster.process = Cluster::Process::kLauncher;
  EXPECT_EQ(paceline::step_work(request_of(step), cluster, {}).gradients, 2048 * 2048 * 4);
}

TEST(StepWork, LinksCarryWhatFramesAreRoundedTo) {
  const models::StepGraph step = one_product(Sgd{});
  Cluster cluster;
  cluster.process = Cluster::Process::kLauncher;
  cluster.links.wire = DType::kBFloat16;
  cluster.links.kind = "tcp";
  const StepCost frames = paceline::step_work(request_of(step), cluster, {});
  EXPECT_EQ(frames.link_bytes_in, 12 * 2);
  EXPECT_EQ(frames.link_bytes_out, 12 * 2);
  cluster.links.kind = "auto";  // shared memory, in which nothing is rounded
  EXPECT_EQ(paceline::step_work(request_of(step), cluster, {}).link_bytes_in, 12 * 4);
}

TEST(StepWork, OfRowsCountsOnlyWhatABatchCanName) {
  models::StepGraph step;
  step.graph = std::make_unique<Graph>();
  const Value ids = step.graph->input("ids", {5}, DType::kInt32);
  const Value table = step.graph->variable("table", {100, 2});
  step.training = minimize(reduce_sum(embedding_lookup(table, ids)), Sgd{});
  const StepCost work = step_work(step);
  EXPECT_EQ(work.link_bytes_out, 5 * 2 * 4);
  EXPECT_EQ(work.rule_bytes, 5 * 2 * 12);
  EXPECT_EQ(work.variables, 100 * 2 * 4);
}

// 18,882,816 parameters at 28 bytes each for Adam, which also keeps a step count for each of 6
// variables.
TEST(StepWork, OfMlpFollowsFromItsShapes) {
  constexpr double kParameters = 18'882'816;
  const StepCost work =
      step_work(models::mlp_model().step_graphs(models::mlp_model().settings())[0]);
  EXPECT_EQ(work.variables, kParameters * 4);
  EXPECT_EQ(work.slots, kParameters * 8 + 6 * 8);
  EXPECT_EQ(work.rule_bytes, kParameters * 28);
  EXPECT_EQ(work.link_bytes_in, kParameters * 4);
  EXPECT_EQ(work.link_bytes_out, kParameters * 4);
  EXPECT_NEAR(work.flops(), 14.2e9, 0.05e9);
}

TEST(StepWork, OfBFloat16ProductsHasAtLeastTheFlopsAndTheSameRules) {
  const models::StepGraph step = one_product(Sgd{});
  RewriteOptions rewrite;
  rewrite.bfloat16_products = true;
  EXPECT_GE(step_work(step, rewrite).flops(), step_work(step).flops());
  EXPECT_EQ(step_work(step, rewrite).rule_bytes, step_work(step).rule_bytes);
}

TEST(StepWork, EveryModelHasStepGraphs) {
  for (const models::Model* model : models::all_models()) {
    for (const models::StepGraph& step : model->step_graphs(model->settings())) {
      EXPECT_GT(step_work(step).flops(), 0) << model->name();
    }
  }
}

TEST(ThreadCounts, EndWithAllCores) {
  using ::testing::ElementsAre;
  EXPECT_THAT(thread_counts(1), ElementsAre(1));
  EXPECT_THAT(thread_counts(3), ElementsAre(1, 2, 3));
  EXPECT_THAT(thread_counts(20), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 16, 20));
}

}  // namespace
}  // namespace paceline::bench
