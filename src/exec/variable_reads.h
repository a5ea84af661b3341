// Finds the readers of a variable: look-ups, which say by their ids which rows they need, and
// others.
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
  bool as_a_whole = false;  // something other than a look-up reads it
};

/// Returns the reads of all variables in the graph, in the order in which those were made.
std::vector<VariableReads> variable_reads(const Graph& graph, std::span<const Value> roots,
                                          const VariableIds& variables);
/// The reads of each variable; borrowed.
std::map<VariableId, const VariableReads*> by_variable(std::span<const VariableReads> reads);

/// Returns the ids that say which rows of sparse variables a batch reads. Throws kInvalidArgument
/// when they depend on a variable, since they are wanted before any value is there.
std::vector<Value> sparse_ids(std::span<const VariableReads> reads,
                              std::span<const VariableSpec> specs);

}  // namespace paceline
