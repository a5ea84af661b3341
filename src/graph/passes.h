// The rewriting passes, one a file. Each gives a new graph in which the roots have the same values,
// bit for bit where nothing else is said.
#pragma once

#include "graph/copy.h"

namespace paceline {

/// Nothing but the live nodes.
RewrittenGraph without_dead_nodes(const RewriteSource& source);
/// As in inference: dropout passes its input on, and batch_norm takes the variables that follow its
/// statistics (Graph::contribute) in their place. The roots get other values by it.
RewrittenGraph with_inference(const RewriteSource& source);
/// Returns true when the graph has anything that with_inference changes.
bool has_modes(const Graph& graph);
/// Nodes of constants become constants, to the rounding of the evaluator's kernels: naive ones sum
/// in double. Those that they were computed from may be left dead.
RewrittenGraph with_folded_constants(const RewriteSource& source, ConstantEvaluator& evaluator);
/// Leaves one of several nodes that have the same op, inputs and attributes.
RewrittenGraph with_merged_nodes(const RewriteSource& source);
/// matmul, lstm, conv2d and their gradients in float32 read their operands rounded to bfloat16,
/// those of matmul by one cast a value. `widened`: these are float32 again. Roots keep their values
/// to that precision.
RewrittenGraph with_bfloat16_products(const RewriteSource& source, bool widened);
/// softmax_cross_entropy and its gradient, a bias before and the sum of its gradient become
/// softmax_cross_entropy_with_grad, where nothing else reads the logits and the gradient of the
/// losses is a constant. To rounding: its kernel goes through a row by blocks.
RewrittenGraph with_fused_loss(const RewriteSource& source);
/// Returns true when the graph has anything that with_fused_loss looks for.
bool has_loss_gradient(const Graph& graph);
/// Images are computed on as (N,H,W,C): see channels_last.cc. To the rounding of kernels.
RewrittenGraph with_channels_last(const RewriteSource& source);
/// Returns true when the graph has anything that with_channels_last moves.
bool has_images(const Graph& graph);
/// conv2d, then batch_norm_inference, become a conv2d with other weights. To rounding.
RewrittenGraph with_folded_batch_norm(const RewriteSource& source);
/// relu, then a max_pool2d that alone reads it, become relu_max_pool2d, and so does their gradient.
RewrittenGraph with_fused_pool_activation(const RewriteSource& source);
/// conv2d, batch_norm and batch_norm_inference take up the relu or leaky relu that follows; of
/// batch_norm the gradient too.
RewrittenGraph with_fused_image_activation(const RewriteSource& source);
/// bias, then an activation that alone reads it, become bias_activation.
RewrittenGraph with_fused_bias(const RewriteSource& source);
/// Trees of element-wise ops become fused_elementwise; see fused_program.h.
RewrittenGraph with_fused_elementwise(const RewriteSource& source);

}  // namespace paceline
