// The kernels that the workloads spend their time in, one by one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/recorder.h"
#include "paceline/graph.h"

namespace paceline::bench {

/// One kernel with its operands: the rest of the graph only feeds it.
struct KernelCase {
  std::string name;
  std::unique_ptr<Graph> graph;
  std::vector<Value> values;  // computed by the kernel
};
/// Returns a case for each of the main ops, in the shapes of mlp and of ptb small.
std::vector<KernelCase> kernel_cases();

/// The case `kernels`: ms of each on all cores, beside the longer of its FLOPs and its bytes (where
/// no cache holds them) at the roof.
void measure_kernels(Recorder& recorder);

}  // namespace paceline::bench
