#include "kernels/cpu/cpu_kernels.h"

namespace paceline {

KernelTable cpu_kernels() {
  KernelTable table;
  add_cpu_elementwise_kernels(table);
  add_cpu_cast_kernels(table);
  add_cpu_fused_kernels(table);
  add_cpu_layout_kernels(table);
  add_cpu_reduce_kernels(table);
  add_cpu_cumulative_sum_kernels(table);
  add_cpu_softmax_kernels(table);
  add_cpu_layer_norm_kernels(table);
  add_cpu_matmul_kernels(table);
  add_cpu_loss_kernels(table);
  add_cpu_conv2d_kernels(table);
  add_cpu_conv2d_weights_grad_kernel(table);
  add_cpu_pool2d_kernels(table);
  add_cpu_local_response_norm_kernels(table);
  add_cpu_batch_norm_kernels(table);
  add_cpu_lstm_kernels(table);
  add_cpu_embedding_kernels(table);
  add_cpu_norm_kernels(table);
  add_cpu_dropout_kernels(table);
  add_cpu_random_kernels(table);
  add_cpu_metric_kernels(table);
  return table;
}

}  // namespace paceline
