// The kernels that take most of the workloads' time, one by one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/recorder.h"
#include "paceline/graph.h"

namespace paceline::bench {

/// One kernel with its operands; the rest of the graph only feeds it.
struct KernelCase {
  std::string name;
  std::unique_ptr<Graph> graph;
  std::vector<Value> values;  // outputs of the kernel
};
/// Returns a case for each of the main ops, in the shapes of mlp and of the small ptb.
std::vector<KernelCase> kernel_cases();

/// The case `kernels`: ms of each kernel on all cores, beside the longer of its FLOPs and its bytes
/// at the roof (bytes count if no cache holds them).
void measure_kernels(Recorder& recorder);

}  // namespace paceline::bench
