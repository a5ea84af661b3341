// Which values are written where the value that joins them is read.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "exec/plan_roots.h"

namespace paceline {

/// A node whose inputs lie one after the other in its output (a concat of rows) needs no kernel
/// when each input is written there in the first place: by a kernel, whole, to an address where
/// kernels take their operands, and for this node alone. A contribution of its own is not: it is
/// written where the store wants it. Nor is an early value, which may be written for the next batch
/// while this step's is read, unless the node is early too.
class ConcatPlacement {
 public:
  struct Place {
    const Node* join = nullptr;  // null: the value has memory of its own
    std::size_t offset = 0;      // in its output, bytes
  };

  ConcatPlacement() = default;
  /// `early`: by node id.
  ConcatPlacement(const Graph& graph, const PlanRoots& roots, const std::vector<bool>& early);

  bool joins(const Node& node) const { return joins_.contains(&node); }
  /// Where an output of a node that is no view is written. A join may be a part of another.
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
