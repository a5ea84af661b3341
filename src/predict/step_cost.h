// The work of a step: what it computes, keeps and sends. All of it follows from the graph.
#pragma once

#include <span>
#include <vector>

#include "exec/plan.h"
#include "kernels/device.h"
#include "paceline/op.h"

namespace paceline {

/// The work of one step of one worker.
struct StepCost {
  std::vector<Cost> ops;      // of the rewritten graph, in order
  std::int64_t reorders = 0;  // of them, those that only lay images out otherwise
  double rule_bytes = 0;      // variables, slots and whole gradients that updates read and write
  double link_bytes_in = 0;   // values that a worker needs anew in each step
  double link_bytes_out = 0;  // its contributions
  std::vector<VariableSpec> specs;
  std::vector<double> bytes_in, bytes_out;  // of link_bytes, by variable
  // The bytes that one process holds.
  double variables = 0, slots = 0, gradients = 0, activations = 0;

  double flops() const;
  double memory() const { return variables + slots + gradients + activations; }
};

/// Returns the bytes that a rule reads and writes per element of the variable: value and slots both
/// ways (a value that is only assigned one way), the gradient once.
double rule_bytes_per_element(const Rule& rule);

/// Returns the bytes of a variable that one step touches; `most_rows`: of a sparse one.
double touched_bytes(const VariableSpec& spec, std::int64_t most_rows);
/// Returns the bytes that the update of a variable passes over in a step that uses it so.
double rule_bytes(const VariableSpec& spec, const PlanBinding::Use& use);

/// Returns the bytes of the slots of so many of its rows.
double slot_bytes(const VariableSpec& spec, double rows);

/// True when other code computes a part of the step: what its ops cost says nothing of that.
bool is_computed_outside(const Plan& plan);
/// Returns the cores that this code keeps busy; 0: there is none, or it is not known.
double busy_cores_outside(const Plan& plan);

/// Returns the work of a step of the plan, which was made for these variables.
StepCost step_work(const Plan& plan, std::span<const VariableSpec> variables);
/// Returns the work of the plan that would be made on that device; the naive device makes its
/// kernels at once. Sparse variables count with as many rows as a batch can name. A gradient that
/// the rule takes part by part while it is computed is neither written, read nor held. Runs no op.
StepCost step_work(const PlanRequest& request, const DeviceOptions& device = {.kind = "naive"});

}  // namespace paceline
