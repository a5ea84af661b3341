#include <algorithm>
#include <cmath>

#include "base/buffer.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/grains.h"
#include "kernels/cpu/norm_rows.h"
#include "kernels/cpu/vector_math.h"
#include "paceline/op.h"

namespace paceline {

namespace {

class LayerNormKernel : public Kernel {
 public:
  LayerNormKernel(const Node& node, ThreadPool& pool)
      : columns_(node.outputs()[0].shape[-1]),
        rows_(node.outputs()[1].shape.elements()),
        epsilon_(node.attributes().get<double>("epsilon")),
        pool_(pool) {}

  void run(const KernelCall& call) override {
    pool_.parallel_for(rows_, rows_grain(columns_), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) run_row(call, r);
    });
  }

 private:
  void run_row(const KernelCall& call, std::int64_t r) const {
    const float* x = call.inputs[0].as<float>() + r * columns_;
    const float mean = float(vector_sum(x, columns_) / double(columns_));
    const double variance = sum_squared_distances(x, mean, columns_) / double(columns_);
    const float scale = float(1 / std::sqrt(variance + epsilon_));
    normalize_row(x, {mean, scale}, call.inputs[1].as<float>(), call.inputs[2].as<float>(),
                  call.outputs[0].as<float>() + r * columns_, columns_);
    call.outputs[1].as<float>()[r] = mean;
    call.outputs[2].as<float>()[r] = scale;
  }

  const std::int64_t columns_, rows_;
  const double epsilon_;
  ThreadPool& pool_;
};

// Sums the gradients of gains and offsets over each part of the rows, and then adds the sums of the
// parts in order. The parts are the same in every step.
class LayerNormGradKernel : public Kernel {
 public:
  LayerNormGradKernel(const Node& node, ThreadPool& pool)
      : columns_(node.outputs()[1].shape[0]),
        rows_(node.input(3).shape().elements()),
        parts_(std::min<std::int64_t>(rows_, pool.threads() == 1 ? 1 : 2 * pool.threads())),
        pool_(pool) {}

  std::size_t scratch_bytes() const override { return std::size_t(parts_) * part_bytes(); }

  void run(const KernelCall& call) override {
    auto part = [&](std::int64_t i) {
      float* sums = part_of(call, i);
      std::fill_n(sums, 2 * columns_, 0.0f);
      const std::int64_t end = rows_ * (i + 1) / parts_;
      for (std::int64_t r = rows_ * i / parts_; r < end; ++r) run_row(call, r, sums);
    };
    pool_.run_tiles(parts_, TileFunction(part));
    add_parts(call, 0, call.outputs[1].as<float>());
    add_parts(call, columns_, call.outputs[2].as<float>());
  }

 private:
  std::size_t part_bytes() const {
    return round_up(std::size_t(2 * columns_) * sizeof(float), kBufferAlignment);
  }
  float* part_of(const KernelCall& call, std::int64_t i) const {
    return reinterpret_cast<float*>(call.scratch.data() + std::size_t(i) * part_bytes());
  }

  void run_row(const KernelCall& call, std::int64_t r, float* sums) const {
    const float* dy = call.inputs[0].as<float>() + r * columns_;
    const float* x = call.inputs[1].as<float>() + r * columns_;
    const float* gains = call.inputs[2].as<float>();
    const RowScale row{call.inputs[3].as<float>()[r], call.inputs[4].as<float>()[r]};
    const NormSums of_row = norm_sums(dy, x, gains, row, sums, sums + columns_, columns_);
    const NormSums means{of_row.gradient / double(columns_), of_row.product / double(columns_)};
    norm_gradient(dy, x, gains, row, means, call.outputs[0].as<float>() + r * columns_, columns_);
  }

  void add_parts(const KernelCall& call, std::int64_t offset, float* total) const {
    std::fill_n(total, columns_, 0.0f);
    for (std::int64_t i = 0; i < parts_; ++i) {
      vector_binary(BinaryFunction::kAdd, 0, {total}, {part_of(call, i) + offset}, total, columns_);
    }
  }

  const std::int64_t columns_, rows_, parts_;
  ThreadPool& pool_;
};

}  // namespace

void add_cpu_layer_norm_kernels(KernelTable& table) {
  table.add("layer_norm", make_float_kernel_of<LayerNormKernel>);
  table.add("layer_norm_grad", make_float_kernel_of<LayerNormGradKernel>);
}

}  // namespace paceline
