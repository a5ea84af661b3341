// The list of the naive kernels, which fast kernels are tested against: plain loops on the calling
// thread.
#pragma once

#include "kernels/kernel_table.h"

namespace paceline {

/// Returns the kernels of all families.
KernelTable naive_kernels();

void add_naive_elementwise_kernels(KernelTable& table);
void add_naive_cast_kernels(KernelTable& table);
void add_naive_fused_kernels(KernelTable& table);
void add_naive_layout_kernels(KernelTable& table);  // transpose, concat, split, slice, pad, …
void add_naive_reduce_kernels(KernelTable& table);
void add_naive_one_hot_kernels(KernelTable& table);
void add_naive_cumulative_sum_kernels(KernelTable& table);
void add_naive_row_kernels(KernelTable& table);  // softmax, layer_norm

void add_naive_matmul_kernels(KernelTable& table);
void add_naive_loss_kernels(KernelTable& table);
void add_naive_conv2d_kernels(KernelTable& table);
void add_naive_pool2d_kernels(KernelTable& table);
void add_naive_local_response_norm_kernels(KernelTable& table);
void add_naive_batch_norm_kernels(KernelTable& table);
void add_naive_lstm_kernels(KernelTable& table);
void add_naive_embedding_kernels(KernelTable& table);
void add_naive_norm_kernels(KernelTable& table);
void add_naive_dropout_kernels(KernelTable& table);
void add_naive_random_kernels(KernelTable& table);
void add_naive_metric_kernels(KernelTable& table);

}  // namespace paceline
