#include "ops/builtin_ops.h"

#include "paceline/graph.h"

namespace paceline {

OpRegistry copy_of_builtin_ops() {
  OpRegistry ops;
  add_source_ops(ops);
  add_binary_ops(ops);
  add_elementwise_ops(ops);
  add_where_ops(ops);
  add_cast_ops(ops);
  add_bias_ops(ops);
  add_fused_ops(ops);
  add_broadcast_ops(ops);
  add_reshape_ops(ops);
  add_transpose_ops(ops);
  add_concat_ops(ops);
  add_slice_ops(ops);
  add_one_hot_ops(ops);
  add_reduce_ops(ops);
  add_cumulative_sum_ops(ops);
  add_softmax_ops(ops);
  add_layer_norm_ops(ops);
  add_matmul_ops(ops);
  add_loss_ops(ops);
  add_conv2d_ops(ops);
  add_pool2d_ops(ops);
  add_local_response_norm_ops(ops);
  add_batch_norm_ops(ops);
  add_lstm_ops(ops);
  add_embedding_ops(ops);
  add_norm_ops(ops);
  add_dropout_ops(ops);
  add_random_ops(ops);
  add_metric_ops(ops);
  return ops;
}

const OpRegistry& builtin_ops() {
  static const OpRegistry ops = copy_of_builtin_ops();
  return ops;
}

Graph::Graph() : Graph(builtin_ops()) {}

}  // namespace paceline
