// Rewriting passes: a new graph that computes the same roots with less work.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "paceline/graph.h"

namespace paceline {

/// Computes a node whose inputs are all constants; the graph does not know how.
class ConstantEvaluator {
 public:
  virtual ~ConstantEvaluator() = default;
  virtual std::vector<Tensor> evaluate(const Node& node, std::span<const Tensor> inputs) = 0;
};

struct RewriteOptions {
  bool fold_constants = true;
  bool merge_common = true;
  bool fuse = true;  // bias + activation, and element-wise chains
  /// Operands of matrix products are rounded to bfloat16 and summed in float32; all else, the
  /// contributions too, stays float32.
  bool bfloat16_products = false;
  /// True when the operands become float32 again, for a device that multiplies float32 faster.
  bool widened_products = false;
  bool channels_last = true;  // images are computed on as (N,H,W,C)
  bool inference = false;     // the roots are those of inference, not of training
};

struct RewrittenGraph {
  std::unique_ptr<Graph> graph;
  std::vector<Value> roots;  // the same roots in the new graph, in the same order
};

/// Counts the transposes of a rewritten graph between images (N,C,H,W) and (N,H,W,C); each step
/// moves the bytes of all of them.
std::int64_t count_reorders(const Graph& graph);

/// Copies what `roots` and the graph's assignments need (dead nodes are left out; all assignments
/// are kept when `keep_assignments`) and applies the passes. Inputs, variables and locals keep
/// their names. If `evaluator` is null, no constant is folded. Without `inference` roots keep their
/// values bit for bit, except for the rounding of with_folded_constants and with_fused_loss and the
/// precision that bfloat16_products asks for.
RewrittenGraph rewrite(const Graph& graph, std::span<const Value> roots, bool keep_assignments,
                       const RewriteOptions& options, ConstantEvaluator* evaluator);

}  // namespace paceline
