// The rewriting passes, one a file, and the copy of a graph that they share. Each pass gives a new
// graph in which the roots have the same values, bit for bit where nothing else is said.
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

  /// All values that the new graph must have: the roots, the assigned locals, and the values
  /// assigned to them.
  std::vector<Value> wanted() const;
  /// Returns, by node id, whether a wanted value needs the node.
  std::vector<bool> live() const;
};

/// How often live nodes read a value, and whether it must stay a value.
class Readers {
 public:
  explicit Readers(const RewriteSource& source);
  /// The one node that reads the value, or null when there are none or several, or it is wanted.
  const Node* only_reader(Value value) const;
  /// The nodes that read the value, and also null if the value is wanted.
  std::set<const Node*> of(Value value) const;

 private:
  void add(Value value, const Node* reader);

  std::pmr::monotonic_buffer_resource memory_;
  ByValue<std::pmr::vector<const Node*>> readers_;  // each once; null: wanted from outside
};

/// A graph whose live part is being copied: every rewriting pass is a copy that treats some nodes
/// differently. Nodes keep their names: random ops draw by them.
class GraphCopy {
 public:
  explicit GraphCopy(const RewriteSource& source);

  Graph& graph() { return *graph_; }
  /// True when the value has a copy.
  bool has(Value old) const { return bool(values_[old]); }
  /// The copy of a value whose node was visited.
  Value copy_of(Value old) const;
  std::vector<Value> copies_of(std::span<const Value> old) const;
  /// Copies the node as it is, over the copies of its inputs.
  void copy(const Node& node);
  /// Adds a node of the op `op` over `inputs`, with the name of `old` and outputs of its types,
  /// which readers of `old` read from then on.
  void copy_as(const Node& old, std::string_view op, std::span<const Value> inputs,
               Attributes attributes);
  /// Makes the readers of `old` read `value`, which has the same type.
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

/// Nothing but the live nodes.
RewrittenGraph without_dead_nodes(const RewriteSource& source);
/// Changes the graph for inference: dropout passes its input on, and batch_norm uses the variables
/// that follow its statistics (Graph::contribute). This changes the roots' values.
RewrittenGraph with_inference(const RewriteSource& source);
/// Returns true when the graph has anything that with_inference changes.
bool has_modes(const Graph& graph);
/// Replaces nodes that have only constant inputs by constants, to the rounding of the evaluator's
/// kernels (naive ones sum in double). Their inputs may stay as dead nodes.
RewrittenGraph with_folded_constants(const RewriteSource& source, ConstantEvaluator& evaluator);
/// Keeps one node of several that have the same op, inputs and attributes.
RewrittenGraph with_merged_nodes(const RewriteSource& source);
/// In the new graph matmul, lstm, conv2d and their gradients in float32 read their operands rounded
/// to bfloat16; those of matmul are cast once for each value. With `widened` the cast operands
/// become float32 again. Roots keep their values to that precision.
RewrittenGraph with_bfloat16_products(const RewriteSource& source, bool widened);
/// softmax_cross_entropy and its gradient, a bias before and the sum of its gradient become
/// softmax_cross_entropy_with_grad, where nothing else reads the logits and the gradient of the
/// losses is a constant. Roots keep their values to rounding, since the kernel goes through a row
/// by blocks.
RewrittenGraph with_fused_loss(const RewriteSource& source);
/// Returns true when the graph has anything that with_fused_loss looks for.
bool has_loss_gradient(const Graph& graph);
/// Computes on images as (N,H,W,C): see channels_last.cc. Roots keep their values to the rounding
/// of kernels.
RewrittenGraph with_channels_last(const RewriteSource& source);
/// Returns true when the graph has anything that with_channels_last moves.
bool has_images(const Graph& graph);
/// Joins conv2d and the batch_norm_inference behind it to a conv2d with other weights. Roots keep
/// their values to rounding.
RewrittenGraph with_folded_batch_norm(const RewriteSource& source);
/// Joins relu and the max_pool2d that alone reads it to relu_max_pool2d, and their gradients, too.
RewrittenGraph with_fused_pool_activation(const RewriteSource& source);
/// Joins conv2d, batch_norm and batch_norm_inference to the relu or leaky relu behind them, and the
/// gradient of batch_norm, too.
RewrittenGraph with_fused_image_activation(const RewriteSource& source);
/// Joins bias and the activation that alone reads it to bias_activation.
RewrittenGraph with_fused_bias(const RewriteSource& source);
/// Joins trees of element-wise ops to fused_elementwise (fused_program.h).
RewrittenGraph with_fused_elementwise(const RewriteSource& source);

}  // namespace paceline
