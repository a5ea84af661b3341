#include "graph/rewrite.h"

#include "graph/passes.h"
#include "paceline/op.h"

namespace paceline {

RewrittenGraph without_dead_nodes(const RewriteSource& source) {
  return GraphCopy::run(source, [](GraphCopy& copy, const Node& node) { copy.copy(node); });
}

RewrittenGraph rewrite(const Graph& graph, std::span<const Value> roots, bool keep_assignments,
                       const RewriteOptions& options, ConstantEvaluator* evaluator) {
  RewrittenGraph now = without_dead_nodes({graph, roots, keep_assignments});
  const auto apply = [&now, keep_assignments](auto pass) {
    now = pass(RewriteSource{*now.graph, now.roots, keep_assignments});
  };
  if (options.fold_constants && evaluator != nullptr) {
    apply([&](const RewriteSource& source) { return with_folded_constants(source, *evaluator); });
    apply(without_dead_nodes);
  }
  if (options.merge_common) apply(with_merged_nodes);
  if (options.bfloat16_products) {
    apply([&](const RewriteSource& source) {
      return with_bfloat16_products(source, options.widened_products);
    });
  }
  if (options.fuse) {
    apply(with_fused_loss);
    apply(with_fused_bias);
    apply(with_fused_elementwise);
  }
  return now;
}

}  // namespace paceline
