// The list of the library's ops, with one line for each family. Each family is defined in the file
// of its name: add_bias_ops() in bias.cc.
#pragma once

#include "paceline/op.h"

namespace paceline {

void add_source_ops(OpRegistry& ops);  // input, variable, local, constant
void add_binary_ops(OpRegistry& ops);  // add, sub, …, pow, comparisons
// scale, relu, …, erf and the ops of their gradients
void add_elementwise_ops(OpRegistry& ops);
void add_where_ops(OpRegistry& ops);
void add_cast_ops(OpRegistry& ops);
void add_bias_ops(OpRegistry& ops);   // bias, bias_activation
void add_fused_ops(OpRegistry& ops);  // fused_elementwise
void add_broadcast_ops(OpRegistry& ops);
void add_reshape_ops(OpRegistry& ops);  // reshape, stop_gradient
void add_transpose_ops(OpRegistry& ops);
void add_concat_ops(OpRegistry& ops);  // concat, split
void add_slice_ops(OpRegistry& ops);   // slice, pad
void add_one_hot_ops(OpRegistry& ops);
void add_reduce_ops(OpRegistry& ops);  // reduce_sum, reduce_mean, reduce_max
void add_cumulative_sum_ops(OpRegistry& ops);
void add_softmax_ops(OpRegistry& ops);
void add_layer_norm_ops(OpRegistry& ops);

void add_matmul_ops(OpRegistry& ops);  // matmul, batch_matmul, matmul_bfloat16, matmul_bias
void add_loss_ops(OpRegistry& ops);
void add_conv2d_ops(OpRegistry& ops);
void add_pool2d_ops(OpRegistry& ops);
void add_local_response_norm_ops(OpRegistry& ops);
void add_batch_norm_ops(OpRegistry& ops);
void add_lstm_ops(OpRegistry& ops);
void add_embedding_ops(OpRegistry& ops);  // embedding_lookup, sum_rows, scatter_rows
void add_norm_ops(OpRegistry& ops);
void add_dropout_ops(OpRegistry& ops);
void add_random_ops(OpRegistry& ops);
void add_metric_ops(OpRegistry& ops);

}  // namespace paceline
