// A graph as text and as Graphviz DOT, from the same facts.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "paceline/op.h"

namespace paceline {
namespace {

std::string with_unit(double amount, std::string_view unit) {
  constexpr std::array<std::string_view, 6> kPrefixes = {"", "k", "M", "G", "T", "P"};
  std::size_t prefix = 0;
  for (; amount >= 1000 && prefix + 1 < kPrefixes.size(); ++prefix) amount /= 1000;
  return prefix == 0 ? fmt::format("{:.0f} {}", amount, unit)
                     : fmt::format("{:.1f} {}{}", amount, kPrefixes[prefix], unit);
}

std::string cost_str(const Cost& cost) {
  return fmt::format("{}, {}", with_unit(cost.flops, "FLOP"), with_unit(cost.bytes, "B"));
}

std::string outputs_str(const Node& node) {
  std::vector<std::string> types;
  for (const ValueType& type : node.outputs()) types.push_back(type.str());
  return fmt::format("{}", fmt::join(types, ", "));
}

std::string inputs_str(const Node& node) {
  std::vector<std::string> names;
  for (const Value& input : node.inputs()) names.push_back(input.name());
  return fmt::format("{}", fmt::join(names, ", "));
}

Cost total_of(const Graph& graph) {
  Cost total;
  for (const auto& node : graph.nodes()) {
    const Cost cost = node->op().cost(*node);
    total.flops += cost.flops;
    total.bytes += cost.bytes;
  }
  return total;
}

std::string totals_str(const Graph& graph) {
  return fmt::format("{} nodes: {}", graph.nodes().size(), cost_str(total_of(graph)));
}

// A label is a quoted string in which \n breaks the line.
std::string escaped(std::string_view text) {
  std::string result;
  for (char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

std::string dot_node(const Node& node) {
  const std::string_view form = node.inputs().empty() ? "ellipse" : "box";
  return fmt::format("  n{} [shape={}, label=\"{}\\n{}: {}\\n{}\"];\n", node.id(), form,
                     escaped(node.name()), escaped(node.op().name), outputs_str(node),
                     cost_str(node.op().cost(node)));
}

}  // namespace

std::string Graph::text() const {
  std::size_t width = 0;
  for (const auto& node : nodes_) width = std::max(width, node->name().size());
  std::string text;
  for (const auto& node : nodes_) {
    text += fmt::format("{:{}} = {}({}): {}; {}\n", node->name(), width, node->op().name,
                        inputs_str(*node), outputs_str(*node), cost_str(node->op().cost(*node)));
  }
  for (const Assignment& assignment : assignments_) {
    text += fmt::format("{} <- {}\n", assignment.local.name(), assignment.value.name());
  }
  for (const auto& [name, value] : names_) {
    text += fmt::format("'{}' is {}\n", name, value.name());
  }
  return text + totals_str(*this) + "\n";
}

std::string Graph::dot() const {
  std::string text = "digraph paceline {\n  node [fontname=\"sans-serif\"];\n";
  for (const auto& node : nodes_) text += dot_node(*node);
  for (const auto& node : nodes_) {
    for (const Value& input : node->inputs()) {
      text += fmt::format("  n{} -> n{} [label=\"{}\"];\n", input.node().id(), node->id(),
                          input.shape().str());
    }
  }
  for (const Assignment& assignment : assignments_) {
    text += fmt::format("  n{} -> n{} [style=dashed, label=\"assign\"];\n",
                        assignment.value.node().id(), assignment.local.node().id());
  }
  return text + fmt::format("  label=\"{}\";\n}}\n", totals_str(*this));
}

}  // namespace paceline
