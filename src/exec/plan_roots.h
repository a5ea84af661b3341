// The values that a plan must compute, before and after the graph is rewritten.
#pragma once

#include <vector>

#include "exec/plan.h"

namespace paceline {

/// One variable's contribution. It is dense, or rows with their ids and the number of valid ones.
struct PlannedUpdate {
  VariableId variable = -1;
  Value dense;
  Value ids, rows, count;
  bool sparse() const { return bool(rows); }
  Value written() const { return sparse() ? rows : dense; }
};

struct PlanRoots {
  std::vector<Value> fetches;
  Value loss, global_norm;
  std::vector<PlannedUpdate> updates;  // of variables that have a contribution

  /// Finds the roots of the graph that was asked for. Throws kNotFound when `specs` lacks a
  /// variable, kInvalidArgument when a contribution does not fit its spec.
  static PlanRoots of(const PlanRequest& request, std::span<const VariableSpec> specs);

  /// Returns all values, in an order that with_values understands.
  std::vector<Value> values() const;
  /// Returns the same roots in another graph.
  PlanRoots with_values(std::span<const Value> values) const;
};

/// Returns the variable's index in `specs`. Throws kNotFound, and kInvalidArgument when type or
/// shape differ.
VariableId variable_id(const Node& variable, std::span<const VariableSpec> specs);

}  // namespace paceline
