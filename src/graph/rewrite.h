// Rewriting passes: a new graph that computes the same roots with less work.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "paceline/graph.h"

namespace paceline {

/// Computes a node whose inputs are all constants, since the graph itself has no kernels.
class ConstantEvaluator {
 public:
  virtual ~ConstantEvaluator() = default;
  virtual std::vector<Tensor> evaluate(const Node& node, std::span<const Tensor> inputs) = 0;
};

struct RewriteOptions {
  bool fold_constants = true;
  bool merge_common = true;
  bool fuse = true;  // the passes with_fused_* and with_folded_batch_norm
  /// Whether operands of matrix products are rounded to bfloat16. The products are summed in
  /// float32, and all other values, also the contributions, stay float32.
  bool bfloat16_products = false;
  /// Whether the rounded operands become float32 again, for a device that multiplies float32
  /// faster.
  bool widened_products = false;
  /// Makes a bias, and the relu behind it, a part of the product before them: for devices whose
  /// products can add them.
  bool biased_products = false;
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

/// Copies the nodes that `roots` and, with `keep_assignments`, the graph's assignments need, and
/// applies the passes. Inputs, variables and locals keep their names. If `evaluator` is null, no
/// constant is folded. Without `inference`, roots keep their values bit for bit, except for the
/// rounding that passes.h names for some passes.
RewrittenGraph rewrite(const Graph& graph, std::span<const Value> roots, bool keep_assignments,
                       const RewriteOptions& options, ConstantEvaluator* evaluator);

}  // namespace paceline
