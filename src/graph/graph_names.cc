// Names in a graph: unique ones for nodes, scopes, and the ones that a user gives.
#include <fmt/format.h>

#include <charconv>

#include "base/nearest.h"
#include "paceline/error.h"
#include "paceline/graph.h"

namespace paceline {
namespace {

// "name:k" is output k of a node.
struct OutputName {
  std::string_view node;
  int output = 0;
};

OutputName split_output(std::string_view name) {
  const std::size_t colon = name.rfind(':');
  if (colon == std::string_view::npos) return {name};
  const std::string_view digits = name.substr(colon + 1);
  int output = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), output);
  if (error != std::errc() || end != digits.data() + digits.size()) return {name};
  return {name.substr(0, colon), output};
}

}  // namespace

void Graph::index_names() const {
  for (; indexed_ < nodes_.size(); ++indexed_) {
    Node& node = *nodes_[indexed_];
    if (nodes_by_name_.try_emplace(*node.name_, &node).second) continue;
    node.name_ = std::make_shared<const std::string>(numbered_name(*node.name_));
    nodes_by_name_.emplace(*node.name_, &node);
  }
}

std::string Graph::numbered_name(const std::string& taken) const {
  // The count is kept so that a thousand nodes of one op do not each search from 1.
  int& count = name_counts_[taken];
  std::string numbered;
  do {
    numbered = fmt::format("{}_{}", taken, ++count);
  } while (nodes_by_name_.contains(numbered));
  return numbered;
}

Value Graph::named(const std::string& name, Value value) {
  const std::string full = scoped(name);
  if (!value || &value.graph() != this) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[graph] '{}' is to name what is no value of this graph", full));
  }
  index_names();
  const auto node = nodes_by_name_.find(full);
  const bool hides_a_source = node != nodes_by_name_.end() && node->second->inputs().empty() &&
                              node->second->output(0) != value;
  if (name.empty() || names_.contains(full) || hides_a_source) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[graph] the name '{}' is {}", full, name.empty() ? "empty" : "taken"));
  }
  names_.emplace(full, value);
  return value;
}

Value Graph::find(std::string_view name) const {
  if (const auto named = names_.find(name); named != names_.end()) return named->second;
  index_names();
  const auto [node_name, output] = split_output(name);
  const auto node = nodes_by_name_.find(node_name);
  if (node != nodes_by_name_.end() && output >= 0 &&
      std::size_t(output) < node->second->outputs().size()) {
    return node->second->output(output);
  }
  std::vector<std::string_view> known;
  for (const auto& [other, value] : names_) known.emplace_back(other);
  for (const auto& node : nodes_) known.emplace_back(node->name());
  throw Error(ErrorCode::kNotFound,
              fmt::format("[graph] there is no value '{}'{}", name, did_you_mean(name, known)));
}

Graph::Scope::Scope(Graph& graph, std::string_view name)
    : graph_(graph), length_(graph.scope_.size()) {
  graph_.scope_ += name;
  graph_.scope_ += '/';
}

Graph::Scope::~Scope() { graph_.scope_.resize(length_); }

}  // namespace paceline
