#include "evidence/step_schedule.h"

#include <gtest/gtest.h>

#include "base/real_clock.h"
#include "paceline/ops.h"

namespace paceline {
namespace {

// The graph has two products of equal FLOPs forwards. Backwards, two products use w2 or make its
// gradient, and then one makes the gradient of w1.
TEST(StepSchedule, FollowsFromTheFlopsOfTheKernels) {
  Graph graph;
  const Value x = graph.input("x", {8, 8}), y = graph.input("y", {8, 8});
  const Value w1 = graph.variable("w1", {8, 8}), w2 = graph.variable("w2", {8, 8});
  const Training training = minimize(reduce_sum(matmul(matmul(x, w1), w2) * y), Sgd{});
  const Graph* const graphs[] = {&graph};
  const std::vector<VariableSpec> specs = variable_specs(graphs, &training);
  RealClock clock;
  const auto device = make_device({.kind = "naive"}, clock);
  PlanRequest request;
  request.graph = &graph;
  request.training = &training;
  const auto plan = make_plan(request, specs, *device);
  const StepSchedule schedule = step_schedule(*plan, specs.size(), 5);
  ASSERT_EQ(schedule.variables.size(), 2u);
  const VariableMoments& first = schedule.variables[0];
  const VariableMoments& second = schedule.variables[1];
  // Element-wise ops take a few percent of the FLOPs.
  EXPECT_EQ(first.needed, 0);
  EXPECT_NEAR(second.needed, 1, 0.15);
  EXPECT_NEAR(second.ready, 4, 0.15);
  EXPECT_NEAR(first.ready, 5, 0.15);
  EXPECT_LE(first.ready, 5.0001);
}

}  // namespace
}  // namespace paceline
