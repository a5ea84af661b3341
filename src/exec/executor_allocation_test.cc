// Tests that a step allocates nothing. This file holds the allocation hook of the whole test
// program.
#include <gtest/gtest.h>

#include "base/allocation_hook.h"
#include "exec/executor.h"
#include "exec/testing/fake_store.h"
#include "paceline/ops.h"

namespace paceline {
namespace {

struct Steps {
  std::int64_t ours = 0, foreign = 0;
};

// Returns the allocations of five steps. Two steps before them do not count, because a library may
// initialise itself then.
Steps count_allocations(const Training& training, int threads) {
  RealClock clock;
  const auto device = make_device({.kind = "cpu", .threads = threads}, clock);
  const Graph* graphs[] = {&training.graph()};
  const std::vector<VariableSpec> specs = variable_specs(graphs, &training);
  std::map<std::string, Tensor> values;
  for (const VariableSpec& spec : specs) values[spec.name] = Tensor(spec.dtype, spec.shape);
  const auto plan = make_plan({&training.graph(), {}, &training, true, {}}, specs, *device);
  LocalMemory locals(training.graph(), *device);
  StepAccount account(clock);
  Executor executor(*plan, std::make_unique<FakeSteps>(specs, values), locals, *device, account);
  const std::vector<float> rates(specs.size(), 0.1f);
  const auto step = [&](std::int64_t i) {
    executor.run({StepKind::kTrain, rates, 1, {.seed = 1, .task = 0, .step = i}});
  };
  for (int i = 0; i < 2; ++i) step(i);
  const AllocationCounts before = allocation_counts();
  for (int i = 2; i < 7; ++i) step(i);
  const AllocationCounts after = allocation_counts();
  return {after.ours - before.ours, after.foreign - before.foreign};
}

TEST(Allocations, AStepOfADenseNetMakesNoneOfOurs) {
  if (!allocations_are_counted()) GTEST_SKIP() << "a sanitizer owns malloc";
  Graph graph;
  const Value x = graph.input("x", {32, 64});
  Value h = relu(dense(x, 128, "layer1"));
  h = relu(dense(h, 128, "layer2"));
  const Value y = graph.input("y", {32, 16});
  const Training training = minimize(mean_squared_error(relu(dense(h, 16, "layer3")), y), Adam{},
                                     {.clip_norm = 5, .learning_rate = {}, .groups = {}});
  for (const int threads : {1, 2}) {
    const Steps steps = count_allocations(training, threads);
    EXPECT_EQ(steps.ours, 0) << threads << " threads";
    // oneDNN itself calls malloc, equally often in each of the five steps.
    RecordProperty("foreign", int(steps.foreign));
    EXPECT_EQ(steps.foreign % 5, 0);
  }
}

TEST(Allocations, AStepWithRowsMakesNoneOfOurs) {
  if (!allocations_are_counted()) GTEST_SKIP() << "a sanitizer owns malloc";
  Graph graph;
  const Value ids = graph.input("ids", {4, 5}, DType::kInt32);
  const Value rows = embedding_lookup(graph.variable("table", {50, 8}), ids);
  const Value h = graph.local("h", {5, 8}), c = graph.local("c", {5, 8});
  const LstmOutput out =
      lstm(dropout(rows, 0.5), h, c, graph.variable("w", {16, 32}), graph.variable("b", {32}));
  graph.assign(h, out.h);
  graph.assign(c, out.c);
  const Value logits = dense(reshape(out.outputs, {20, 8}), 50, "softmax");
  const Value losses = softmax_cross_entropy(logits, reshape(ids, {20}));
  const Training training =
      minimize(reduce_sum(losses), Sgd{}, {.clip_norm = 1, .learning_rate = {}, .groups = {}});
  EXPECT_EQ(count_allocations(training, 1).ours, 0);
}

}  // namespace
}  // namespace paceline
