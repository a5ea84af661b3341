#include "exec/node_order.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory_resource>
#include <queue>
#include <tuple>

#include "base/buffer.h"
#include "graph/sources.h"
#include "graph/views.h"
#include "paceline/op.h"

namespace paceline {
namespace {

/// Returns the value that `value` reshapes, possibly in several steps; `value` itself if it is no
/// reshape.
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

/// Returns where each input of a join is written in its output; empty if one of them cannot be
/// written there.
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

namespace {

// Where a node's value is used: nowhere (kNone), only for one contribution, `distance` nodes away,
// or for several things or a result of the step (kMany).
struct End {
  static constexpr int kNone = -1, kMany = -2;
  int contribution = kNone;
  int distance = 0;

  void join(int other, int other_distance) {
    if (other == kNone) return;
    if (contribution == kNone) {
      contribution = other;
      distance = other_distance;
    } else if (contribution != other) {
      contribution = kMany;
    } else {
      distance = std::min(distance, other_distance);
    }
  }
};

// Finds, backwards over the graph, where each node's value is used. The norm, which reads every
// contribution, does not count.
std::vector<End> ends_of(const Graph& graph, const PlanRoots& roots) {
  std::vector<End> ends(graph.nodes().size());
  const auto join = [&](const Value& value, int contribution, int distance) {
    if (value) ends[std::size_t(value.node().id())].join(contribution, distance);
  };
  for (const Value& value : roots.fetches) join(value, End::kMany, 0);
  join(roots.loss, End::kMany, 0);
  for (const Graph::Assignment& assignment : graph.assignments()) {
    join(assignment.value, End::kMany, 0);
  }
  for (std::size_t i = 0; i < roots.updates.size(); ++i) {
    for (const Value& value :
         {roots.updates[i].written(), roots.updates[i].ids, roots.updates[i].count}) {
      join(value, int(i), 0);
    }
  }
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    const End& end = ends[std::size_t((*node)->id())];
    for (const Value& input : (*node)->inputs()) join(input, end.contribution, end.distance + 1);
  }
  return ends;
}

std::vector<bool> needed_by(const Graph& graph, std::span<const Value> values) {
  std::vector<bool> needed(graph.nodes().size());
  for (const Value& value : values) needed[std::size_t(value.node().id())] = true;
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    if (!needed[std::size_t((*node)->id())]) continue;
    for (const Value& input : (*node)->inputs()) needed[std::size_t(input.node().id())] = true;
  }
  return needed;
}

using Users = std::pmr::vector<std::pmr::vector<std::size_t>>;

std::size_t maker_of(Value value) {
  while (is_view(value.node())) value = value.node().input(0);
  return std::size_t(value.node().id());
}

/// A variable with a dense contribution, and the node that makes this contribution.
struct Updated {
  const Node* variable;
  std::size_t maker;
};

std::vector<Updated> updated_variables(const Graph& graph, const PlanRoots& roots,
                                       std::span<const VariableReads> reads) {
  const std::map<VariableId, const VariableReads*> reads_of = by_variable(reads);
  std::vector<Updated> updated;
  for (const PlannedUpdate& update : roots.updates) {
    const auto read = reads_of.find(update.variable);
    if (update.sparse() || read == reads_of.end()) continue;
    const std::size_t maker = maker_of(update.dense);
    if (!graph.nodes()[maker]->inputs().empty()) updated.push_back({read->second->node, maker});
  }
  return updated;
}

// Marks the nodes that compute something from variables and constants alone, and were made after
// the contributions to all these variables. An example is a weight decay's penalty that is only
// printed.
std::vector<bool> readers_aside(const Graph& graph, std::span<const Updated> updated) {
  std::vector<std::size_t> maker(graph.nodes().size(), std::numeric_limits<std::size_t>::max());
  for (const Updated& each : updated) maker[std::size_t(each.variable->id())] = each.maker;
  std::vector<bool> aside(graph.nodes().size());
  for (const auto& node : graph.nodes()) {
    const auto id = std::size_t(node->id());
    bool any = false, all = true;
    for (const Value& input : node->inputs()) {
      const auto from = std::size_t(input.node().id());
      const bool late = aside[from] || maker[from] < id;
      any = any || late;
      all = all && (late || input.node().op().name == "constant");
    }
    aside[id] = any && all;
  }
  return aside;
}

// For each variable, orders its readers before the node that makes its dense contribution, and
// before the readers that readers_aside() marks. A reader that was made after that node is not
// moved, since it may need the node's result.
void put_after_readers(std::span<const Updated> updated, const std::vector<bool>& aside,
                       Users& users, std::vector<int>& missing) {
  for (const auto& [variable, maker] : updated) {
    const auto readers = users[std::size_t(variable->id())];
    for (const std::size_t reader : readers) {
      if (aside[reader] || reader >= maker) continue;
      const auto after = [&](std::size_t node) {
        users[reader].push_back(node);
        ++missing[node];
      };
      after(maker);
      for (const std::size_t last : readers) {
        if (aside[last]) after(last);
      }
    }
  }
}

}  // namespace

NodeOrder order_nodes(const Graph& graph, const PlanRoots& roots,
                      std::span<const VariableReads> reads, std::span<const Value> early) {
  const std::vector<End> ends = ends_of(graph, roots);
  const std::vector<bool> first = needed_by(graph, early);
  const std::size_t count = graph.nodes().size();

  const std::vector<Updated> updated = updated_variables(graph, roots, reads);
  const std::vector<bool> aside = readers_aside(graph, updated);

  // The smallest key runs first: nodes of the prologue, then the marked readers, since
  // contributions wait for these, then nodes nearest to their only contribution, then the node made
  // first.
  using Key = std::tuple<bool, int, int>;
  std::priority_queue<Key, std::vector<Key>, std::greater<>> runnable;
  const auto add = [&](std::size_t id) {
    const End& end = ends[id];
    int distance = end.contribution >= 0 ? end.distance : std::numeric_limits<int>::max();
    if (aside[id]) distance = -1;
    runnable.push({!first[id], distance, int(id)});
  };

  std::vector<int> missing(count);
  std::pmr::monotonic_buffer_resource memory;
  Users users(count, &memory);
  for (std::size_t id = 0; id < count; ++id) {
    const auto inputs = graph.nodes()[id]->inputs();
    missing[id] = int(inputs.size());
    for (const Value& input : inputs) users[std::size_t(input.node().id())].push_back(id);
    if (inputs.empty()) add(id);
  }
  put_after_readers(updated, aside, users, missing);

  NodeOrder order;
  order.parts = ConcatPlacement(graph, roots, first);
  while (!runnable.empty()) {
    const std::size_t id = std::size_t(std::get<2>(runnable.top()));
    runnable.pop();
    const Node& node = *graph.nodes()[id];
    if (!is_source(node) && !is_view(node) && !order.parts.joins(node)) {
      order.nodes.push_back(&node);
      if (first[id]) ++order.prologue;
    }
    for (const std::size_t user : users[id]) {
      if (--missing[user] == 0) add(user);
    }
  }
  return order;
}

}  // namespace paceline
