// The values that a plan must compute, before and after the graph is rewritten.
#pragma once

#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "exec/plan.h"

namespace paceline {

/// One variable's contribution: dense, or rows with their ids and the number of valid rows.
struct PlannedUpdate {
  VariableId variable = -1;
  Value dense;
  Value ids, rows, count;
  bool sparse() const { return bool(rows); }
  Value written() const { return sparse() ? rows : dense; }
};

/// Finds the variables of a graph by name among those of a store.
class VariableIds {
 public:
  /// Borrows `specs`.
  explicit VariableIds(std::span<const VariableSpec> specs);
  /// Returns the index of the variable in specs(). Throws kNotFound, and kInvalidArgument if type
  /// or shape differ.
  VariableId of(const Node& variable) const;
  std::span<const VariableSpec> specs() const { return specs_; }

 private:
  std::span<const VariableSpec> specs_;
  std::map<std::string_view, VariableId> by_name_;
};

struct PlanRoots {
  std::vector<Value> fetches;
  Value loss, global_norm;
  std::vector<PlannedUpdate> updates;  // of the variables with a contribution

  /// Finds the roots of the requested graph. Throws kNotFound if `variables` lacks a variable, and
  /// kInvalidArgument if a contribution does not fit its spec.
  static PlanRoots of(const PlanRequest& request, const VariableIds& variables);

  /// Returns all values, in the order that with_values expects.
  std::vector<Value> values() const;
  /// Returns these roots with other values, such as those of a rewritten graph, in the order of
  /// values().
  PlanRoots with_values(std::span<const Value> values) const;
};

}  // namespace paceline
