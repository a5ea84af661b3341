// The work of building, differentiating and planning a graph grows no faster than the graph. The
// test counts allocations and inferred nodes, which do not depend on the machine.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/allocation_scope.h"
#include "base/clock.h"
#include "exec/plan.h"
#include "kernels/device.h"
#include "paceline/minimize.h"
#include "paceline/op.h"
#include "paceline/ops.h"

namespace paceline {
namespace {

struct Work {
  std::int64_t allocations = 0, inferred = 0;
  std::int64_t inferred_by_plan = 0;  // the part of `inferred` that planning caused
};

/// Returns the library's ops, which count how often a node's types are inferred.
OpRegistry counting_ops(std::int64_t& inferred) {
  OpRegistry ops;
  for (const Op* op : builtin_ops().all()) {
    Op counted = *op;
    counted.infer = [&inferred, infer = op->infer](const OpInputs& in) {
      ++inferred;
      return infer(in);
    };
    ops.add(std::move(counted));
  }
  return ops;
}

/// Adds a chain of layers, each with a named output and a local variable that keeps it.
Value add_layers(Graph& graph, int layers) {
  Value x = graph.input("x", {2, 3});
  for (int i = 0; i < layers; ++i) {
    const std::string name = "layer" + std::to_string(i);
    x = graph.named(name + "/out", relu(dense(x, 3, name)));
    graph.assign(graph.local(name + "/kept", {2, 3}), x);
  }
  return x;
}

Work work_of(int layers) {
  Work work;
  const std::int64_t before = allocation_counts().ours;
  const OpRegistry ops = counting_ops(work.inferred);
  Graph graph(ops);
  const Training training = minimize(reduce_sum(add_layers(graph, layers)), Sgd{});
  RealClock clock;
  const std::unique_ptr<Device> device = make_device({.kind = "naive"}, clock);
  const Graph* graphs[] = {&graph};
  const std::vector<VariableSpec> specs = variable_specs(graphs, &training);
  const PlanRequest request{.graph = &graph,
                            .fetches = {},
                            .training = &training,
                            .run_assignments = true,
                            .rewrite = {}};
  const std::int64_t inferred = work.inferred;
  const std::unique_ptr<Plan> plan = make_plan(request, specs, *device);
  work.inferred_by_plan = work.inferred - inferred;
  EXPECT_EQ(plan->binding.uses.size(), std::size_t(2 * layers));
  work.allocations = allocation_counts().ours - before;
  return work;
}

TEST(PlanGrowth, TwiceTheLayersAreTwiceTheWork) {
  const Work some = work_of(50), twice = work_of(100), four_times = work_of(200);
  // Differences between sizes cancel the work that does not depend on the size.
  EXPECT_EQ(four_times.inferred - twice.inferred, 2 * (twice.inferred - some.inferred));
  if (!allocations_are_counted()) GTEST_SKIP() << "a sanitizer owns malloc";
  const double growth = double(four_times.allocations - twice.allocations) /
                        double(twice.allocations - some.allocations);
  EXPECT_LT(growth, 2.1);
}

// The nodes of a copied graph, and nodes that replace several others, take over known types.
TEST(PlanGrowth, PlanningALayerInfersNoTypes) {
  EXPECT_EQ(work_of(50).inferred_by_plan, work_of(100).inferred_by_plan);
}

// The chain lies in one piece of memory; each value uses the memory of the value before it.
TEST(PlanGrowth, AChainInPlaceIsOneBuffer) {
  Graph graph;
  Value x = graph.input("x", {1024});
  x = x + 1;
  for (int i = 0; i < 300; ++i) x = softmax(x);
  RealClock clock;
  const std::unique_ptr<Device> device = make_device({.kind = "naive"}, clock);
  const PlanRequest request{
      .graph = &graph, .fetches = {x}, .training = nullptr, .run_assignments = true, .rewrite = {}};
  EXPECT_EQ(make_plan(request, {}, *device)->arena_bytes, 1024 * sizeof(float));
}

}  // namespace
}  // namespace paceline
