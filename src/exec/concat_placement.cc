#include "exec/concat_placement.h"

#include "base/buffer.h"
#include "graph/sources.h"
#include "graph/views.h"
#include "paceline/op.h"

namespace paceline {
namespace {

/// Returns the value that `value` is a reshape of, whose whole memory it is.
Value without_reshapes(Value value) {
  while (is_reshaped(value.node())) value = value.node().input(0);
  return value;
}

}  // namespace

ConcatPlacement::ConcatPlacement(const Graph& graph, const PlanRoots& roots,
                                 const std::vector<bool>& early) {
  std::set<Key> contributions;
  for (const PlannedUpdate& update : roots.updates) {
    contributions.insert(key_of(without_reshapes(update.written())));
  }
  for (const auto& node : graph.nodes()) {
    if (!node->op().concat_offset) continue;
    std::map<Key, Place> parts = parts_of(*node, contributions, early);
    if (parts.empty()) continue;
    joins_.insert(node.get());
    places_.merge(parts);
  }
}

/// Returns nothing when one of them cannot be written there.
std::map<ConcatPlacement::Key, ConcatPlacement::Place> ConcatPlacement::parts_of(
    const Node& node, const std::set<Key>& contributions, const std::vector<bool>& early) const {
  std::map<Key, Place> parts;
  for (int i = 0; i < int(node.inputs().size()); ++i) {
    const std::int64_t first = node.op().concat_offset(node, i);
    const std::size_t offset = std::size_t(first) * size_of(node.outputs()[0].dtype);
    if (first < 0 || offset % kBufferAlignment != 0) return {};
    const Value part = without_reshapes(node.input(i));
    const Node& maker = part.node();
    if (is_source(maker) || is_view(maker)) return {};
    if (early[std::size_t(maker.id())] && !early[std::size_t(node.id())]) return {};
    const Key key = key_of(part);
    if (contributions.contains(key) || places_.contains(key)) return {};
    if (!parts.insert({key, {&node, offset}}).second) return {};
  }
  return parts;
}

ConcatPlacement::Place ConcatPlacement::place_of(const Value& value) const {
  Place place;
  for (auto at = places_.find(key_of(value)); at != places_.end();
       at = places_.find({at->second.join, 0})) {
    place = {at->second.join, place.offset + at->second.offset};
  }
  return place;
}

}  // namespace paceline
