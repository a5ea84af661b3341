// Copies the live part of a graph; every rewriting pass is a copy that treats some nodes otherwise.
#pragma once

#include <functional>
#include <memory>
#include <memory_resource>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "graph/by_value.h"
#include "graph/rewrite.h"

namespace paceline {

/// The input of a pass: a graph, and the values that are wanted of it.
struct RewriteSource {
  const Graph& graph;
  std::span<const Value> roots;
  bool keep_assignments = true;

  /// All values that must be there afterwards: roots, assigned locals and what they become.
  std::vector<Value> wanted() const;
  /// By node id: whether a wanted value needs it.
  std::vector<bool> live() const;
};

/// How often live nodes read a value, and whether it must stay a value.
class Readers {
 public:
  explicit Readers(const RewriteSource& source);
  /// The one node that reads the value, or null when there are none or several, or it is wanted.
  const Node* only_reader(Value value) const;
  /// The nodes that read the value, and null if it is wanted.
  std::set<const Node*> of(Value value) const;

 private:
  void add(Value value, const Node* reader);

  std::pmr::monotonic_buffer_resource memory_;
  ByValue<std::pmr::vector<const Node*>> readers_;  // each once; null: wanted from outside
};

/// A graph being copied. Nodes keep their names: random ops draw by them.
class GraphCopy {
 public:
  explicit GraphCopy(const RewriteSource& source);

  Graph& graph() { return *graph_; }
  /// True when the value has a copy.
  bool has(Value old) const { return bool(values_[old]); }
  /// The copy of a value whose node was visited.
  Value copy_of(Value old) const;
  std::vector<Value> copies_of(std::span<const Value> old) const;
  /// The node as it is, over copies of its inputs.
  void copy(const Node& node);
  /// A node of the op `op`, over `inputs`, that has the name of `old` and outputs of its types, and
  /// is read in its place.
  void copy_as(const Node& old, std::string_view op, std::span<const Value> inputs,
               Attributes attributes);
  /// Readers of `old` are to read `value`, which has its type.
  void replace(Value old, Value value) { values_[old] = value; }

  /// Visits live nodes in order; `visit` copies, replaces or leaves out each.
  using Visit = std::function<void(GraphCopy&, const Node&)>;
  static RewrittenGraph run(const RewriteSource& source, const Visit& visit);

 private:
  void copy_assignments(const RewriteSource& source);
  void copy_names(const RewriteSource& source);

  std::unique_ptr<Graph> graph_;
  ByValue<Value> values_;
};

}  // namespace paceline
