// What a step computes, keeps and sends. All of it follows from the graph.
#pragma once

#include <vector>

#include "exec/plan.h"
#include "kernels/device.h"
#include "paceline/cluster.h"
#include "paceline/op.h"
#include "paceline/run_options.h"

namespace paceline {

/// What one step of one worker has to do.
struct StepCost {
  std::vector<Cost> ops;      // of the rewritten graph, in order
  double rule_bytes = 0;      // variables, slots and whole gradients that updates read and write
  double link_bytes_in = 0;   // values that a worker needs anew in each step
  double link_bytes_out = 0;  // its contributions
  std::vector<VariableSpec> specs;
  std::vector<double> bytes_in, bytes_out;  // of link_bytes, by variable
  // Bytes that one process holds.
  double variables = 0, slots = 0, gradients = 0, activations = 0;

  double flops() const;
  double memory() const { return variables + slots + gradients + activations; }
};

/// Bytes that a rule reads and writes per element of the variable: value and slots both ways (a
/// value that is only assigned one way), the gradient once.
double rule_bytes_per_element(const Rule& rule);

/// Of so many of its rows.
double slot_bytes(const VariableSpec& spec, double rows);

/// Whether the tasks read each other's memory: then hardly a byte is sent, and none is rounded.
bool shares_memory(const Cluster& cluster);

/// Of the plan that would be made on that device; the naive one makes its kernels at once. Sparse
/// variables count with as many rows as a batch can name. A gradient that the rule takes part by
/// part while it is computed is neither written, read nor held. Runs nothing.
StepCost step_work(const PlanRequest& request, const DeviceOptions& device = {.kind = "naive"});
/// As this process would make the step, or a worker that it starts.
StepCost step_work(PlanRequest request, const Cluster& cluster, const RunOptions& run);

}  // namespace paceline
