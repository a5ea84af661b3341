#include "predict/simulation/coarse_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "predict/simulation/simulate.h"
#include "predict/simulation/step_of_plan.h"

namespace paceline {
namespace {

SimulatedStep many_tensors() {
  return simulated_step(ModelSizes{.parameters = 4e6, .tensors = 200, .step_seconds = 50e-3});
}

double rule_bytes(const SimulatedStep& step) {
  return std::accumulate(
      step.variables.begin(), step.variables.end(), 0.0,
      [](double sum, const StepVariable& each) { return sum + each.rule_bytes; });
}

TEST(CoarseStep, KeepsBytesSecondsAndMessages) {
  const SimulatedStep step = many_tensors(), coarse = coarse_step(step, 20);
  EXPECT_EQ(coarse.specs.size(), 20u);
  std::int64_t elements = 0, tensors = 0;
  for (std::size_t v = 0; v < coarse.specs.size(); ++v) {
    elements += coarse.specs[v].shape.elements();
    tensors += coarse.variables[v].tensors;
  }
  EXPECT_EQ(elements, 4'000'000);
  EXPECT_EQ(tensors, 200);
  EXPECT_NEAR(rule_bytes(coarse), rule_bytes(step), 1);
  double seconds = 0;
  for (const StepAction& action : coarse.actions) seconds += action.seconds;
  EXPECT_NEAR(seconds, 50e-3, 1e-9);
}

TEST(CoarseStep, SparseVariablesStayByThemselves) {
  SimulatedStep step = many_tensors();
  step.specs[100].sparse = true;
  step.variables[100].most_rows = 5;
  const SimulatedStep coarse = coarse_step(step, 20);
  EXPECT_EQ(std::ranges::count(coarse.specs, true, &VariableSpec::sparse), 1);
}

TEST(CoarseStep, MakesAsManyStepsASecond) {
  SimulatedCluster cluster;
  for (int i = 0; i < 9; ++i) {
    cluster.machines.push_back({.cores = 4, .bytes_per_s = 50e9});
    cluster.hosts.push_back({i, 100e6, 20e-6});
  }
  cluster.ps = {0};
  for (int i = 1; i < 9; ++i) cluster.workers.push_back(i);
  const SimulatedStep step = many_tensors(), coarse = coarse_step(step, 40);
  for (const char* strategy : {"async", "sync"}) {
    const auto with = [&](const SimulatedStep& one) {
      return simulate({.step = &one, .cluster = cluster, .strategy = {strategy}});
    };
    const SimulatedSpeed fine = with(step), fast = with(coarse);
    EXPECT_NEAR(fast.steps_per_s / fine.steps_per_s, 1, 0.03) << strategy;
    EXPECT_LT(1.2 * double(fast.events), double(fine.events)) << strategy;
  }
}

}  // namespace
}  // namespace paceline
