#include "kernels/naive/naive_kernels.h"

namespace paceline {

KernelTable naive_kernels() {
  KernelTable table;
  add_naive_elementwise_kernels(table);
  add_naive_cast_kernels(table);
  add_naive_fused_kernels(table);
  add_naive_layout_kernels(table);
  add_naive_reduce_kernels(table);
  add_naive_one_hot_kernels(table);
  add_naive_cumulative_sum_kernels(table);
  add_naive_row_kernels(table);
  add_naive_matmul_kernels(table);
  add_naive_loss_kernels(table);
  add_naive_conv2d_kernels(table);
  add_naive_pool2d_kernels(table);
  add_naive_local_response_norm_kernels(table);
  add_naive_batch_norm_kernels(table);
  add_naive_lstm_kernels(table);
  add_naive_embedding_kernels(table);
  add_naive_norm_kernels(table);
  add_naive_dropout_kernels(table);
  add_naive_random_kernels(table);
  add_naive_metric_kernels(table);
  return table;
}

}  // namespace paceline
