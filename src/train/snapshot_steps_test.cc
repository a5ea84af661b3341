#include "train/snapshot_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "paceline/ops.h"
#include "params/local/local_store.h"
#include "train/plan_set.h"

namespace paceline {
namespace {

constexpr int kRounds = 5;

/// One device with its plans and accounts, over a shared store and snapshot.
struct Side {
  Side(ParameterStore& store, VariableSnapshot& snapshot)
      : plans({store, *device, snapshot, account, account, {}}) {}

  RealClock clock;
  std::unique_ptr<Device> device = make_device({.kind = "cpu"}, clock);
  StepAccount account{clock};
  PlanSet plans;
};

void fill_from(const TensorView& view, float first) {
  for (std::int64_t i = 0; i < view.shape.elements(); ++i) {
    view.as<float>()[i] = first + 0.1f * float(i % 7);
  }
}

// After the refresh, an evaluation reads values of its own. Each side has a device, locals and
// accounts of its own.
TEST(SnapshotSteps, AnEvaluationRunsOnItsThreadBesideTraining) {
  Graph graph;
  const Value x = graph.input("x", {8, 16});
  const Value state = graph.local("state", {8, 16});
  const Value loss = reduce_mean(square(dense(tanh(add(x, state)), 16, "layer")));
  graph.assign(state, x);
  const Training training = minimize(loss, Sgd{0.1f});
  const Graph* const graph_pointer = &graph;
  const auto store =
      make_local_store(variable_specs({&graph_pointer, 1}, &training), nullptr, nullptr);
  for (VariableId v = 0; v < VariableId(store->variables().size()); ++v) {
    Tensor value(DType::kFloat32, store->variables()[std::size_t(v)].shape);
    fill_from(value.view(), 0.1f);
    std::vector<VariableState> states;
    states.push_back({v, value, {}});
    store->write(std::move(states), 0);
  }
  VariableSnapshot snapshot(*store);
  Side train(*store, snapshot), evaluate(*store, snapshot);
  TrainPlans& plan = train.plans.make_train_plans(training, {}, {});
  ReadPlan& reader =
      evaluate.plans.read_plan(StepKind::kEvaluate, graph, {&loss, 1}, Mode::kInfer, true);
  fill_from(plan.executor().view("x"), 0.3f);
  fill_from(reader.executor().view("x"), 0.3f);
  EXPECT_NE(train.plans.locals(graph).view("state").data,
            evaluate.plans.locals(graph).view("state").data);

  snapshot.refresh(EvaluateWith::kVariables);
  const float expected = *reader.run({StepKind::kEvaluate, {}, 0, {}})[0].as<float>();
  std::atomic<int> steps = 0, evaluations = 0;
  std::atomic<bool> same = true;
  std::jthread thread([&] {
    while (evaluations < kRounds || steps < kRounds) {
      const TensorView got = reader.run({StepKind::kEvaluate, {}, 0, {}})[0];
      if (*got.as<float>() != expected) same = false;
      ++evaluations;
    }
  });
  const std::vector<float> rates(store->variables().size(), 0.1f);
  while (evaluations < kRounds || steps < kRounds) {
    plan.executor().run({StepKind::kTrain, rates, 8, {.seed = 1, .task = 0, .step = steps}});
    ++steps;
  }
  thread.join();
  EXPECT_TRUE(same) << "an evaluation has seen a later value";
  snapshot.refresh(EvaluateWith::kVariables);
  EXPECT_NE(*reader.run({StepKind::kEvaluate, {}, 0, {}})[0].as<float>(), expected);
}

}  // namespace
}  // namespace paceline
