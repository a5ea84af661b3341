// The work of a step: what it computes, keeps and sends. It follows from the graph alone.
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
  std::int64_t reorders = 0;  // how many of the ops only change the layout of images
  // The bytes of variables, slots and whole gradients that updates read and write.
  double rule_bytes = 0;
  double link_bytes_in = 0;   // the bytes of values that a worker fetches in each step
  double link_bytes_out = 0;  // its contributions
  std::vector<VariableSpec> specs;
  std::vector<double> bytes_in, bytes_out;  // link_bytes_in and link_bytes_out, by variable
  // The bytes that one process holds.
  double variables = 0, slots = 0, gradients = 0, activations = 0;

  double flops() const;
  double memory() const { return variables + slots + gradients + activations; }
};

/// Returns the bytes that a rule reads and writes per element of the variable: value and slots in
/// both directions (a value that is only assigned counts in one direction), and the gradient once.
double rule_bytes_per_element(const Rule& rule);

/// Returns the bytes of a variable that one step touches. Of a sparse variable, these are
/// `most_rows` rows.
double touched_bytes(const VariableSpec& spec, std::int64_t most_rows);
/// Returns the bytes that the update of a variable passes over in a step with this use.
double rule_bytes(const VariableSpec& spec, const PlanBinding::Use& use);

/// Returns the bytes of the slots of `rows` rows of the variable.
double slot_bytes(const VariableSpec& spec, double rows);

/// True if other code computes a part of the step: the ops' costs do not cover that part.
bool is_computed_outside(const Plan& plan);
/// Returns the cores that the other code keeps busy; 0: there is no such code, or the number is not
/// known.
double busy_cores_outside(const Plan& plan);
/// Returns the seconds that the other code was seen to take for a step; 0: there is no such code.
double seconds_outside(const Plan& plan);

/// Returns the work of a step of the plan, which was made for these variables.
StepCost step_work(const Plan& plan, std::span<const VariableSpec> variables);
/// Returns the work of the plan that would be made for that device; plans for the naive device are
/// the quickest to make. Sparse variables count with the most rows that a batch can name. A
/// gradient that the rule takes part by part while it is computed counts as neither written, nor
/// read, nor held. Runs no op.
StepCost step_work(const PlanRequest& request, const DeviceOptions& device = {.kind = "naive"});

}  // namespace paceline
