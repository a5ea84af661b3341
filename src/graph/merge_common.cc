#include <fmt/format.h>
#include <bit>
#include <unordered_map>

#include "graph/passes.h"
#include "graph/sources.h"
#include "paceline/op.h"

namespace paceline {
namespace {

// Writes an item so that two items have the same text only if they are equal bit for bit.
struct ItemText {
  std::string operator()(bool item) const { return item ? "true" : "false"; }
  std::string operator()(std::int64_t item) const { return fmt::format("{}", item); }
  std::string operator()(double item) const {
    return fmt::format("{:x}", std::bit_cast<std::uint64_t>(item));
  }
  std::string operator()(const std::string& item) const {
    return fmt::format("{}'{}'", item.size(), item);
  }
  std::string operator()(const std::vector<std::int64_t>& item) const {
    return fmt::format("[{}]", fmt::join(item, ","));
  }
  std::string operator()(DType item) const { return std::string(name_of(item)); }
  std::string operator()(const Tensor& item) const {
    const std::string_view bytes(static_cast<const char*>(item.raw()), item.bytes());
    return fmt::format("{}{}{}:{}", name_of(item.dtype()), item.shape().str(), bytes.size(), bytes);
  }
};

void add_bytes(std::string& key, const auto& item) {
  key.append(reinterpret_cast<const char*>(&item), sizeof(item));
}

// Returns a key that is equal for two nodes if they have the same op, inputs and attributes.
std::string key_of(const Node& node, std::span<const Value> inputs) {
  std::string key;
  add_bytes(key, &node.op());
  add_bytes(key, inputs.size());
  for (const Value& input : inputs) {
    add_bytes(key, input.node().id());
    add_bytes(key, input.output());
  }
  for (const auto& [name, item] : node.attributes().items()) {
    key += fmt::format(";{}={}#{}", name, item.index(), std::visit(ItemText{}, item));
  }
  return key;
}

}  // namespace

RewrittenGraph with_merged_nodes(const RewriteSource& source) {
  std::unordered_map<std::string, const Node*> first;
  first.reserve(source.graph.nodes().size());
  return GraphCopy::run(source, [&first](GraphCopy& copy, const Node& node) {
    if (is_fed(node) || node.op().stateful) return copy.copy(node);
    const std::vector<Value> inputs = copy.copies_of(node.inputs());
    const auto [known, is_new] = first.try_emplace(key_of(node, inputs), &node);
    if (is_new) return copy.copy(node);
    for (int k = 0; k < int(node.outputs().size()); ++k) {
      copy.replace(node.output(k), copy.copy_of(known->second->output(k)));
    }
  });
}

}  // namespace paceline
