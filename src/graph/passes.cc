#include "graph/passes.h"

#include <set>
#include <utility>

#include "base/check.h"
#include "paceline/op.h"

namespace paceline {

std::vector<Value> RewriteSource::wanted() const {
  std::vector<Value> values(roots.begin(), roots.end());
  if (!keep_assignments) return values;
  for (const Graph::Assignment& assignment : graph.assignments()) {
    values.push_back(assignment.local);
    values.push_back(assignment.value);
  }
  return values;
}

std::vector<bool> RewriteSource::live() const {
  std::vector<bool> live(graph.nodes().size(), false);
  for (const Value& value : wanted()) live[std::size_t(value.node().id())] = true;
  for (std::size_t id = live.size(); id-- > 0;) {
    if (!live[id]) continue;
    for (const Value& input : graph.nodes()[id]->inputs()) {
      live[std::size_t(input.node().id())] = true;
    }
  }
  return live;
}

Readers::Readers(const RewriteSource& source) : readers_(source.graph, &memory_) {
  const std::vector<bool> live = source.live();
  for (const auto& node : source.graph.nodes()) {
    if (!live[std::size_t(node->id())]) continue;
    for (const Value& input : node->inputs()) add(input, node.get());
  }
  for (const Value& value : source.wanted()) add(value, nullptr);
}

// Readers are added node by node: if a node reads a value twice, it is still the last reader the
// second time.
void Readers::add(Value value, const Node* reader) {
  std::pmr::vector<const Node*>& readers = readers_[value];
  if (readers.empty() || readers.back() != reader) readers.push_back(reader);
}

const Node* Readers::only_reader(Value value) const {
  const std::pmr::vector<const Node*>& readers = readers_[value];
  return readers.size() == 1 ? readers[0] : nullptr;
}

std::set<const Node*> Readers::of(Value value) const {
  return {readers_[value].begin(), readers_[value].end()};
}

GraphCopy::GraphCopy(const RewriteSource& source)
    : graph_(std::make_unique<Graph>(source.graph.ops())), values_(source.graph) {}

Value GraphCopy::copy_of(Value old) const {
  const Value copy = values_[old];
  PACELINE_CHECK(copy);
  return copy;
}

std::vector<Value> GraphCopy::copies_of(std::span<const Value> old) const {
  std::vector<Value> copies;
  for (const Value& value : old) copies.push_back(copy_of(value));
  return copies;
}

void GraphCopy::copy(const Node& node) {
  const std::vector<Value> inputs = copies_of(node.inputs());
  const Node& copied =
      graph_->append_typed(node.op(), inputs, node.outputs(), node.attributes(), node.name_);
  for (int k = 0; k < int(node.outputs().size()); ++k) replace(node.output(k), copied.output(k));
}

void GraphCopy::copy_as(const Node& old, std::string_view op, std::span<const Value> inputs,
                        Attributes attributes) {
  const Node& node = graph_->append_typed(graph_->ops().find(op), inputs, old.outputs(),
                                          std::move(attributes), old.name_);
  for (int k = 0; k < int(old.outputs().size()); ++k) replace(old.output(k), node.output(k));
}

RewrittenGraph GraphCopy::run(const RewriteSource& source, const Visit& visit) {
  GraphCopy copy(source);
  const std::vector<bool> live = source.live();
  for (const auto& node : source.graph.nodes()) {
    if (live[std::size_t(node->id())]) visit(copy, *node);
  }
  if (source.keep_assignments) copy.copy_assignments(source);
  copy.copy_names(source);
  std::vector<Value> roots = copy.copies_of(source.roots);
  return {std::move(copy.graph_), std::move(roots)};
}

void GraphCopy::copy_assignments(const RewriteSource& source) {
  for (const Graph::Assignment& assignment : source.graph.assignments()) {
    graph_->assign(copy_of(assignment.local), copy_of(assignment.value));
  }
}

void GraphCopy::copy_names(const RewriteSource& source) {
  std::set<std::pair<int, int>> roots;
  for (const Value& root : source.roots) roots.emplace(root.node().id(), root.output());
  for (const auto& [name, value] : source.graph.names()) {
    const bool is_root = roots.contains({value.node().id(), value.output()});
    if (is_root) graph_->named(name, copy_of(value));
  }
}

}  // namespace paceline
