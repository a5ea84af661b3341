// Finds the values that can be written directly into the value that joins them.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "exec/plan_roots.h"

namespace paceline {

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

}  // namespace paceline
