// The order in which a plan runs its nodes.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "exec/plan_roots.h"
#include "exec/variable_reads.h"

namespace paceline {

/// Finds the values that can be written directly into the value that joins them.
/// A node whose inputs lie one after the other in its output (a concat of rows) needs no kernel
/// when each input is written there in the first place. That is possible for an input that a kernel
/// writes as a whole, to an address where kernels take their operands, and for this node alone. It
/// is not possible for a contribution, which is written where the store wants it, nor for an early
/// value unless the node is early too: it may be written for the next batch while this step's is
/// read.
class ConcatPlacement {
 public:
  struct Place {
    const Node* join = nullptr;  // null when the value has memory of its own
    std::size_t offset = 0;      // bytes from the beginning of the node's output
  };

  ConcatPlacement() = default;
  /// `early` tells by node id which nodes are early.
  ConcatPlacement(const Graph& graph, const PlanRoots& roots, const std::vector<bool>& early);

  bool joins(const Node& node) const { return joins_.contains(&node); }
  /// Returns where an output of a node that is no view is written. A join may be a part of another.
  Place place_of(const Value& value) const;

 private:
  using Key = std::pair<const Node*, int>;
  static Key key_of(const Value& value) { return {&value.node(), value.output()}; }

  std::map<Key, Place> parts_of(const Node& node, const std::set<Key>& contributions,
                                const std::vector<bool>& early) const;

  std::map<Key, Place> places_;
  std::set<const Node*> joins_;
};

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
