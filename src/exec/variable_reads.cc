#include "exec/variable_reads.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "graph/sources.h"
#include "paceline/error.h"
#include "paceline/op.h"

namespace paceline {
namespace {

const Node* variable_behind(const Value& value, std::set<const Node*>& seen) {
  const Node& node = value.node();
  if (!seen.insert(&node).second) return nullptr;
  if (is_variable(node)) return &node;
  for (const Value& input : node.inputs()) {
    if (const Node* variable = variable_behind(input, seen)) return variable;
  }
  return nullptr;
}

}  // namespace

std::vector<VariableReads> variable_reads(const Graph& graph, std::span<const Value> roots,
                                          const VariableIds& variables) {
  std::vector<VariableReads> reads;
  std::vector<int> index(graph.nodes().size(), -1);
  const auto find = [&](const Value& value) -> VariableReads* {
    const int i = index[std::size_t(value.node().id())];
    return i < 0 ? nullptr : &reads[std::size_t(i)];
  };
  for (const auto& node : graph.nodes()) {
    if (is_variable(*node)) {
      index[std::size_t(node->id())] = int(reads.size());
      reads.push_back({variables.of(*node), node.get(), {}, false});
    }
    const bool lookup = node->op().name == "embedding_lookup";
    for (std::size_t i = 0; i < node->inputs().size(); ++i) {
      VariableReads* read = find(node->inputs()[i]);
      if (read == nullptr) continue;
      if (lookup && i == 0) {
        read->ids.push_back(node->input(1));
      } else {
        read->as_a_whole = true;
      }
    }
  }
  const auto read_whole = [&](const Value& value) {
    if (VariableReads* read = find(value)) read->as_a_whole = true;
  };
  for (const Value& root : roots) read_whole(root);
  for (const Graph::Assignment& assignment : graph.assignments()) read_whole(assignment.value);
  return reads;
}

std::map<VariableId, const VariableReads*> by_variable(std::span<const VariableReads> reads) {
  std::map<VariableId, const VariableReads*> found;
  for (const VariableReads& read : reads) found.emplace(read.variable, &read);
  return found;
}

std::vector<Value> sparse_ids(std::span<const VariableReads> reads,
                              std::span<const VariableSpec> specs) {
  std::vector<Value> all;
  for (const VariableReads& read : reads) {
    if (!specs[std::size_t(read.variable)].sparse || read.as_a_whole) continue;
    for (const Value& ids : read.ids) {
      std::set<const Node*> seen;
      if (const Node* variable = variable_behind(ids, seen)) {
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("[plan] which rows of {} a batch reads depends on variable {}: ids "
                                "must be known before a step asks for rows",
                                read.node->name(), variable->name()));
      }
      all.push_back(ids);
    }
  }
  return all;
}

}  // namespace paceline
