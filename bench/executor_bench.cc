// What the executor adds to an op: 1,000 unfused, dependent ops on a few elements, so that next to
// nothing of the time is computing. "per op" is the time of a step by its ops, on a device of as
// many threads as the last number of the name says.
//   cmake --preset release -DPACELINE_BENCHMARKS=ON && ninja -C build/release executor_bench
#include <benchmark/benchmark.h>

#include <functional>

#include "exec/executor.h"
#include "exec/fake_store.h"
#include "paceline/ops.h"

namespace {

using namespace paceline;

constexpr int kOps = 1000;

/// Op i of the chain: from the value before it and the input.
using Link = std::function<Value(int i, Value before, Value x)>;

Value chain(Graph& graph, std::int64_t elements, const Link& link) {
  const Value x = graph.input("x", {elements});
  Value y = x;
  for (int i = 0; i < kOps; ++i) y = link(i, y, x);
  return y;
}

void run_chain(benchmark::State& state, std::int64_t elements, const Link& link) {
  RealClock clock;
  const auto device = make_device({.threads = int(state.range(0))}, clock);
  Graph graph;
  const Value y = chain(graph, elements, link);
  PlanRequest request;
  request.graph = &graph;
  request.fetches = {y};
  request.rewrite.fuse = false;
  const auto plan = make_plan(request, {}, *device);
  std::map<std::string, Tensor> values;
  LocalMemory locals(graph, *device);
  StepAccount account(clock);
  Executor executor(*plan, std::make_unique<FakeSteps>(std::span<const VariableSpec>{}, values),
                    locals, *device, account);
  std::fill_n(executor.view("x").as<float>(), elements, 0.001f);
  if (plan->kernels.size() != kOps) return state.SkipWithError("ops were merged");
  for (auto _ : state) executor.run({StepKind::kEvaluate, {}, 1, {}});
  state.counters["per op"] = benchmark::Counter(
      kOps, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void add_chain(const char* name, std::int64_t elements, const Link& link) {
  benchmark::RegisterBenchmark(name,
                               [=](benchmark::State& state) { run_chain(state, elements, link); })
      ->Arg(1)
      ->Arg(2);
}

}  // namespace

int main(int argc, char** argv) {
  add_chain("add_1", 1, [](int, Value y, Value x) { return add(y, x); });
  add_chain("add_8", 8, [](int, Value y, Value x) { return add(y, x); });
  add_chain("scale_1", 1, [](int i, Value y, Value) { return scale(y, 1 + 1e-6 * i); });
  add_chain("scale_8", 8, [](int i, Value y, Value) { return scale(y, 1 + 1e-6 * i); });
  add_chain("add_and_scale_8", 8,
            [](int i, Value y, Value x) { return i % 2 == 0 ? add(y, x) : scale(y, 0.5); });
  add_chain("tanh_8", 8, [](int, Value y, Value) { return tanh(y); });
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
