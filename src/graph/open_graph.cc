#include "graph/open_graph.h"

#include <algorithm>
#include <cstdint>
#include <variant>

#include "graph/sources.h"

namespace paceline {
namespace {

// Dimensions stand in attributes as shapes, and as places and sizes of slices.
Attributes sized_attributes(const Attributes& attributes, const OpenSizes& sizes) {
  Attributes made = attributes;
  for (const auto& [name, item] : attributes.items()) {
    const auto* const dims = std::get_if<std::vector<std::int64_t>>(&item);
    if (dims == nullptr || std::ranges::none_of(*dims, is_open)) continue;
    std::vector<std::int64_t> now = *dims;
    for (std::int64_t& dim : now) dim = sized(dim, sizes);
    made.set(name, std::move(now));
  }
  return made;
}

}  // namespace

std::vector<std::string> open_names(std::span<const Value> values) {
  std::vector<std::string> found;
  for (const Value& value : values) {
    for (const std::int64_t dim : value.shape().dims()) {
      for (std::string& name : open_names(dim)) {
        if (std::ranges::find(found, name) == found.end()) found.push_back(std::move(name));
      }
    }
  }
  return found;
}

Value open_input(const Graph& graph) {
  for (const auto& node : graph.nodes()) {
    if (!is_fed(*node)) continue;
    const Value value = node->output(0);
    if (std::ranges::any_of(value.shape().dims(), is_open)) return value;
  }
  return {};
}

RewrittenGraph with_sizes(const RewriteSource& source, const OpenSizes& sizes) {
  return GraphCopy::run(source, [&sizes](GraphCopy& copy, const Node& node) {
    const std::vector<Value> inputs = copy.copies_of(node.inputs());
    const Node& made = copy.graph().add(node.op().name, inputs,
                                        sized_attributes(node.attributes(), sizes), node.name());
    for (int k = 0; k < int(node.outputs().size()); ++k) {
      copy.replace(node.output(k), made.output(k));
    }
  });
}

}  // namespace paceline
