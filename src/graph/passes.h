// The rewriting passes, one in each file, and the class GraphCopy that they share. Each pass makes
// a new graph in which the roots have the same values, bit for bit unless the pass says otherwise.
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

  /// Returns all values that the new graph must have: the roots and, with `keep_assignments`, the
  /// assigned locals and the values assigned to them.
  std::vector<Value> wanted() const;
  /// Returns, by node id, whether a wanted value needs the node.
  std::vector<bool> live() const;
};

/// Which live nodes read a value, and whether the value is wanted (RewriteSource::wanted).
class Readers {
 public:
  explicit Readers(const RewriteSource& source);
  /// Returns the only node that reads the value; null if no node or several nodes read the value,
  /// or if it is wanted.
  const Node* only_reader(Value value) const;
  /// Returns the nodes that read the value, and null among them if the value is wanted.
  std::set<const Node*> of(Value value) const;

 private:
  void add(Value value, const Node* reader);

  std::pmr::monotonic_buffer_resource memory_;
  ByValue<std::pmr::vector<const Node*>> readers_;  // each reader once; null if wanted
};

/// A copy of a graph's live nodes, in the making: every pass copies most nodes as they are and
/// treats some differently. Nodes keep their names, since the numbers of random ops depend on them.
class GraphCopy {
 public:
  explicit GraphCopy(const RewriteSource& source);

  Graph& graph() { return *graph_; }
  /// True when the value has a copy.
  bool has(Value old) const { return bool(values_[old]); }
  /// Returns the copy of a value whose node was visited.
  Value copy_of(Value old) const;
  std::vector<Value> copies_of(std::span<const Value> old) const;
  /// Copies the node as it is; the copy reads the copies of its inputs.
  void copy(const Node& node);
  /// Adds a node of the op `op` that reads `inputs` and has the name and the output types of `old`.
  /// Readers of `old` read the new node from then on.
  void copy_as(const Node& old, std::string_view op, std::span<const Value> inputs,
               Attributes attributes);
  /// Makes the readers of `old` read `value`, which has the same type.
  void replace(Value old, Value value) { values_[old] = value; }

  /// Visits the live nodes in the order of their ids; `visit` copies, replaces or leaves out each.
  using Visit = std::function<void(GraphCopy&, const Node&)>;
  static RewrittenGraph run(const RewriteSource& source, const Visit& visit);

 private:
  void copy_assignments(const RewriteSource& source);
  void copy_names(const RewriteSource& source);

  std::unique_ptr<Graph> graph_;
  ByValue<Value> values_;
};

/// Copies the live nodes and nothing else.
RewrittenGraph without_dead_nodes(const RewriteSource& source);
/// Changes the graph for inference: dropout passes its input on, and batch_norm uses the variables
/// that follow its statistics (Graph::contribute). This changes the roots' values.
RewrittenGraph with_inference(const RewriteSource& source);
/// Returns true if the graph has contributions or dropout, which with_inference may change.
bool has_modes(const Graph& graph);
/// Replaces nodes that have only constant inputs by constants, unless these would be much larger
/// than the inputs. Values change by the rounding of the evaluator's kernels (naive ones sum in
/// double). The inputs may stay as dead nodes.
RewrittenGraph with_folded_constants(const RewriteSource& source, ConstantEvaluator& evaluator);
/// Keeps one node of several that have the same op, inputs and attributes.
RewrittenGraph with_merged_nodes(const RewriteSource& source);
/// Makes float32 nodes of matmul, lstm, conv2d and their gradients round their operands to
/// bfloat16. A value that several matmuls read is cast once. With `widened`, the cast operands of
/// matmul become float32 again. Roots keep their values to the precision of bfloat16.
RewrittenGraph with_bfloat16_products(const RewriteSource& source, bool widened);
/// Joins softmax_cross_entropy and its gradient to softmax_cross_entropy_with_grad, with a bias
/// before the loss and the sum of the bias's gradient. Nothing else may read the logits, and the
/// gradient of the losses must be a constant. Roots keep their values to rounding, since the kernel
/// goes through a row by blocks.
RewrittenGraph with_fused_loss(const RewriteSource& source);
/// Returns true when the graph has anything that with_fused_loss looks for.
bool has_loss_gradient(const Graph& graph);
/// Computes on images as (N,H,W,C): see channels_last.cc. Roots keep their values to the rounding
/// of kernels.
RewrittenGraph with_channels_last(const RewriteSource& source);
/// Returns true when the graph has anything that with_channels_last moves.
bool has_images(const Graph& graph);
/// Joins a conv2d and the batch_norm_inference that alone reads it to a conv2d with other weights.
/// Roots keep their values to rounding.
RewrittenGraph with_folded_batch_norm(const RewriteSource& source);
/// Joins a relu and the max_pool2d after it to relu_max_pool2d, and their gradients to
/// max_pool2d_grad. Nothing else may read the relu.
RewrittenGraph with_fused_pool_activation(const RewriteSource& source);
/// Joins a conv2d, batch_norm or batch_norm_inference and the relu or leaky relu after it, and the
/// gradient of a batch_norm and that of its activation.
RewrittenGraph with_fused_image_activation(const RewriteSource& source);
/// Joins a bias and the activation that alone reads it to bias_activation.
RewrittenGraph with_fused_bias(const RewriteSource& source);
/// Joins a float32 matmul or a matmul_bfloat16 and the bias or relu of a bias that alone reads it
/// to matmul_bias.
RewrittenGraph with_biased_products(const RewriteSource& source);
/// Joins trees of element-wise ops to fused_elementwise (fused_program.h).
RewrittenGraph with_fused_elementwise(const RewriteSource& source);

}  // namespace paceline
