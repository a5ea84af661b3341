#include "graph/rewrite.h"

#include "graph/passes.h"
#include "paceline/op.h"

namespace paceline {

RewrittenGraph without_dead_nodes(const RewriteSource& source) {
  return GraphCopy::run(source, [](GraphCopy& copy, const Node& node) { copy.copy(node); });
}

RewrittenGraph rewrite(const Graph& graph, std::span<const Value> roots, bool keep_assignments,
                       const RewriteOptions& options, ConstantEvaluator* evaluator) {
  RewrittenGraph now{nullptr, {roots.begin(), roots.end()}};
  const auto apply = [&](auto pass) {
    const Graph& before = now.graph == nullptr ? graph : *now.graph;
    now = pass(RewriteSource{before, now.roots, keep_assignments});
  };
  if (options.inference && has_modes(graph)) apply(with_inference);
  if (options.fold_constants && evaluator != nullptr) {
    apply([&](const RewriteSource& source) { return with_folded_constants(source, *evaluator); });
  }
  // Folding leaves dead nodes behind, which this pass does not copy.
  apply(options.merge_common ? with_merged_nodes : without_dead_nodes);
  if (options.bfloat16_products) {
    apply([&](const RewriteSource& source) {
      return with_bfloat16_products(source, options.widened_products);
    });
  }
  const bool images = has_images(*now.graph);
  if (options.channels_last && images) apply(with_channels_last);
  if (options.fuse) {
    if (has_loss_gradient(*now.graph)) apply(with_fused_loss);
    if (images) {
      apply(with_folded_batch_norm);
      apply(with_fused_pool_activation);
      apply(with_fused_image_activation);
    }
    apply(with_fused_bias);
    if (options.biased_products) apply(with_biased_products);
    apply(with_fused_elementwise);
  }
  return now;
}

}  // namespace paceline
