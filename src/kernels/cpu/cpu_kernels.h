// The list of the fast CPU kernels. Naive kernels compute the ops that are not in this list and the
// types that a factory refuses, such as float64.
#pragma once

#include "kernels/kernel_table.h"

namespace paceline {

/// Returns the kernels of all families.
KernelTable cpu_kernels();

void add_cpu_elementwise_kernels(KernelTable& table);
void add_cpu_cast_kernels(KernelTable& table);
void add_cpu_fused_kernels(KernelTable& table);
void add_cpu_layout_kernels(KernelTable& table);
void add_cpu_reduce_kernels(KernelTable& table);
void add_cpu_cumulative_sum_kernels(KernelTable& table);
void add_cpu_softmax_kernels(KernelTable& table);
void add_cpu_layer_norm_kernels(KernelTable& table);

void add_cpu_matmul_kernels(KernelTable& table);
void add_cpu_loss_kernels(KernelTable& table);
void add_cpu_conv2d_kernels(KernelTable& table);
void add_cpu_conv2d_weights_grad_kernel(KernelTable& table);
void add_cpu_pool2d_kernels(KernelTable& table);
void add_cpu_local_response_norm_kernels(KernelTable& table);
void add_cpu_batch_norm_kernels(KernelTable& table);
void add_cpu_lstm_kernels(KernelTable& table);
void add_cpu_embedding_kernels(KernelTable& table);
void add_cpu_norm_kernels(KernelTable& table);
void add_cpu_dropout_kernels(KernelTable& table);
void add_cpu_random_kernels(KernelTable& table);
void add_cpu_metric_kernels(KernelTable& table);

}  // namespace paceline
