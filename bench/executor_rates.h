// The time that the executor and the accounting add to the kernels.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/recorder.h"
#include "bench/runner.h"

namespace paceline::bench {

constexpr int kChainOps = 1000;

/// A chain of dependent ops that compute almost nothing.
struct TinyChain {
  std::string name;
  std::int64_t elements;
  std::function<Value(int i, Value before, Value x)> link;  // makes op i
};
const std::vector<TinyChain>& tiny_chains();
/// Makes the chain ready to run, with its ops unfused.
std::unique_ptr<Runner> make_runner(const TinyChain& chain, int threads);

/// The case `executor`: ns per op of the chains; the share of a step that its accounting takes (the
/// number of accounting calls × the cost of a call ÷ the step's time); and the seconds until a deep
/// graph can train.
void measure_executor(Recorder& recorder);

}  // namespace paceline::bench
