// Measures the time that the executor adds to an op, with 1,000 unfused, dependent ops on a few
// elements, so that computing takes almost no time. "per op" is the time of a step divided by its
// ops, on a device with as many threads as the last number of the name. `paceline bench executor`
// measures the same.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "bench/executor_rates.h"

namespace {

using namespace paceline::bench;

void run_chain(benchmark::State& state, const TinyChain& chain) {
  const auto runner = make_runner(chain, int(state.range(0)));
  while (state.KeepRunning()) runner->run();
  state.counters["per op"] = benchmark::Counter(
      kChainOps, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

}  // namespace

int main(int argc, char** argv) {
  for (const TinyChain& chain : tiny_chains()) {
    const std::string name = fmt::format("{}_{}", chain.name, chain.elements);
    benchmark::RegisterBenchmark(name.c_str(), run_chain, chain)->Arg(1)->Arg(2);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
