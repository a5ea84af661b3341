// The kernels that take most of the workloads' time, each measured by itself.
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
/// Returns a case for each of the main ops, most of them in the shapes of mlp and of the small ptb.
std::vector<KernelCase> kernel_cases();

/// The case `kernels`: the time of each kernel on all cores in ms, beside its bound. The bound is
/// the time of its FLOPs or of its memory traffic at this machine's measured peak rates (the roof),
/// whichever is longer. Memory traffic counts only if no cache holds the kernel's arrays.
void measure_kernels(Recorder& recorder);

}  // namespace paceline::bench
