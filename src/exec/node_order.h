// The order in which a plan runs its nodes.
#pragma once

#include <vector>

#include "exec/concat_placement.h"
#include "exec/plan_roots.h"
#include "exec/variable_reads.h"

namespace paceline {

struct NodeOrder {
  std::vector<const Node*> nodes;  // those with kernels; inputs come before their users
  std::size_t prologue = 0;        // so many of them, the first ones, compute `early`
  ConcatPlacement parts;
};

/// Puts first what `early` needs. The rest keeps the order in which nodes were made, with three
/// exceptions. A node which only one contribution waits for runs as soon as it can, nearest to its
/// contribution first, so that contributions are ready early. A dense contribution is computed
/// after everything else that reads its variable, since it is not handed over before. What was made
/// after it of variables alone runs as soon as the other readers of these variables have run.
NodeOrder order_nodes(const Graph& graph, const PlanRoots& roots,
                      std::span<const VariableReads> reads, std::span<const Value> early);

}  // namespace paceline
