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

/// Finds the values that can be written directly into the value that joins them. A node whose
/// inputs lie one after the other in its output (a concat of rows) needs no kernel if each input is
/// written there in the first place. An input qualifies if a kernel writes it as a whole, at an
/// address where kernels accept operands, and for this node alone. A contribution does not qualify,
/// because it is written where the store wants it. A value that the prologue computes qualifies
/// only if the prologue computes the joined value, too: the prologue may write it for the next
/// batch while this step's value is still being read.
class ConcatPlacement {
 public:
  struct Place {
    const Node* join = nullptr;  // null if the value has its own memory
    std::size_t offset = 0;      // bytes from the start of the node's output
  };

  ConcatPlacement() = default;
  /// `early` says, by node id, which nodes run in the prologue.
  ConcatPlacement(const Graph& graph, const PlanRoots& roots, const std::vector<bool>& early);

  bool joins(const Node& node) const { return joins_.contains(&node); }
  /// Returns where `value`, the output of a node that is no view, is written. If the join is part
  /// of another join, the place is in the outermost one.
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
  std::vector<const Node*> nodes;  // the nodes with kernels; inputs come before their users
  std::size_t prologue = 0;        // how many nodes run first, to compute `early`
  ConcatPlacement parts;
};

/// Puts the nodes first that `early` needs. The others keep the order in which they were made, with
/// three exceptions. A node that only one contribution waits for runs as soon as it can, nearest to
/// its contribution first, so that contributions are ready early. A dense contribution is computed
/// after everything else that reads its variable, since it is not handed over before. A node that
/// was made after that contribution, and computes from variables and constants alone, runs as soon
/// as the other readers of these variables have run.
NodeOrder order_nodes(const Graph& graph, const PlanRoots& roots,
                      std::span<const VariableReads> reads, std::span<const Value> early);

}  // namespace paceline
