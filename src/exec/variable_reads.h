// Finds the readers of a variable: look-ups, whose ids say which rows they need, and other nodes.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "exec/plan_roots.h"

namespace paceline {

struct VariableReads {
  VariableId variable = -1;
  const Node* node = nullptr;
  std::vector<Value> ids;   // the ids of the look-ups into it
  bool as_a_whole = false;  // a node other than a look-up reads it
};

/// Returns the reads of all variables in the graph, in the order in which the variables were made.
std::vector<VariableReads> variable_reads(const Graph& graph, std::span<const Value> roots,
                                          const VariableIds& variables);
/// Returns the reads of each variable; borrows `reads`.
std::map<VariableId, const VariableReads*> by_variable(std::span<const VariableReads> reads);

/// Returns the ids that say which rows of sparse variables a batch reads. Throws kInvalidArgument
/// if they depend on a variable, because the step needs them before any value.
std::vector<Value> sparse_ids(std::span<const VariableReads> reads,
                              std::span<const VariableSpec> specs);

}  // namespace paceline
