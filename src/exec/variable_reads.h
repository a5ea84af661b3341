// Who reads a variable: look-ups, which say by their ids which rows they need, or anything else.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "exec/plan_roots.h"

namespace paceline {

struct VariableReads {
  VariableId variable = -1;
  const Node* node = nullptr;
  std::vector<Value> ids;   // of the look-ups into it
  bool as_a_whole = false;  // something else reads it
};

/// Of all variables in the graph, in the order in which they were made.
std::vector<VariableReads> variable_reads(const Graph& graph, std::span<const Value> roots,
                                          const VariableIds& variables);
/// The reads of each variable; borrowed.
std::map<VariableId, const VariableReads*> by_variable(std::span<const VariableReads> reads);

/// The ids that say which rows of sparse variables a batch reads. Throws kInvalidArgument when they
/// depend on a variable, since they are wanted before any is there.
std::vector<Value> sparse_ids(std::span<const VariableReads> reads,
                              std::span<const VariableSpec> specs);

}  // namespace paceline
