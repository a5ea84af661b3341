#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/buffer.h"
#include "kernels/cpu/block_sum.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/grains.h"
#include "kernels/cpu/loss_rows.h"
#include "kernels/cpu/vector_math.h"
#include "kernels/index_check.h"
#include "ops/label_smoothing.h"

namespace paceline {

namespace {

// The base of the loss and its gradient, which go through rows of logits and their labels.
class LossKernel : public Kernel {
 public:
  LossKernel(const Node& node, ThreadPool& pool)
      : node_(node),
        pool_(pool),
        rows_(node.input(0).shape()[0]),
        classes_(node.input(0).shape()[1]),
        wanted_(WantedProbabilities::of(node.attributes(), classes_)) {}

 protected:
  template <typename F>
  void for_rows(const KernelCall& call, F&& f) {
    const std::span labels(call.inputs[1].as<std::int32_t>(), std::size_t(rows_));
    check_indices(node_, "label", labels, classes_);
    pool_.parallel_for(rows_, rows_grain(classes_), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) f(r, labels[std::size_t(r)]);
    });
  }

  /// Returns Σ p·x, where p are the wanted probabilities; `of_label` is x of the label.
  double wanted_logit(const float* x, double of_label) const {
    const double of_each = wanted_.of_each == 0 ? 0 : wanted_.of_each * vector_sum(x, classes_);
    return wanted_.of_label * of_label + of_each;
  }
  /// Subtracts the wanted probabilities times `gradient` from y.
  void take_wanted(float* y, std::int32_t label, float gradient) const {
    if (wanted_.of_each != 0) {
      const float each = float(wanted_.of_each) * gradient;
      vector_binary(BinaryFunction::kSub, 0, {y}, {&each, true}, y, classes_);
    }
    y[label] -= float(wanted_.of_label) * gradient;
  }

  const Node& node_;
  ThreadPool& pool_;
  const std::int64_t rows_, classes_;
  const WantedProbabilities wanted_;
};

class SoftmaxCrossEntropyKernel : public LossKernel {
 public:
  using LossKernel::LossKernel;
  void run(const KernelCall& call) override {
    for_rows(call, [&](std::int64_t r, std::int32_t label) {
      const float* x = call.inputs[0].as<float>() + r * classes_;
      const float largest = vector_max(x, classes_);
      const double log_sum = largest + std::log(sum_exp(x, largest, classes_));
      call.outputs[0].as<float>()[r] = float(log_sum - wanted_logit(x, x[label]));
      call.outputs[1].as<float>()[r] = float(log_sum);
    });
  }
};

class SoftmaxCrossEntropyGradKernel : public LossKernel {
 public:
  using LossKernel::LossKernel;
  void run(const KernelCall& call) override {
    for_rows(call, [&](std::int64_t r, std::int32_t label) {
      const float* x = call.inputs[0].as<float>() + r * classes_;
      float* dx = call.outputs[0].as<float>() + r * classes_;
      const float log_sum = call.inputs[2].as<float>()[r];
      const float gradient = call.inputs[3].as<float>()[r];
      scaled_exp(x, log_sum, gradient, dx, classes_);
      take_wanted(dx, label, gradient);
    });
  }
};

// Goes through groups of rows, which stay in the cache between their two passes. In a row, each
// block of classes subtracts its own largest logit. The gradients of the biases are summed over
// each part of the rows, and then over the parts in order; the parts are the same in every step.
class SoftmaxCrossEntropyWithGradKernel : public LossKernel {
 public:
  SoftmaxCrossEntropyWithGradKernel(const Node& node, ThreadPool& pool)
      : LossKernel(node, pool),
        biased_(node.inputs().size() == 4),
        parts_(std::min<std::int64_t>(rows_, pool.threads() == 1 ? 1 : 2 * pool.threads())) {}

  std::size_t scratch_bytes() const override { return std::size_t(parts_) * part_bytes(); }

  void run(const KernelCall& call) override {
    const std::span labels(call.inputs[1].as<std::int32_t>(), std::size_t(rows_));
    check_indices(node_, "label", labels, classes_);
    auto part = [&](std::int64_t i) {
      const Part own = part_of(call, i);
      std::fill_n(own.sums, classes_, 0.0f);
      const std::int64_t end = rows_ * (i + 1) / parts_;
      for (std::int64_t r = rows_ * i / parts_; r < end; r += kGroupRows) {
        group(call, r, std::min(end, r + kGroupRows), own);
      }
    };
    pool_.run_tiles(parts_, TileFunction(part));
    if (biased_) add_parts(call, call.outputs[2].as<float>());
  }

 private:
  static constexpr std::int64_t kGroupRows = 4, kBlockClasses = 1024;

  std::int64_t blocks() const { return (classes_ + kBlockClasses - 1) / kBlockClasses; }

  // The scratch memory of a part of the rows.
  struct Part {
    BlockOfExp* exps;  // the blocks of one row
    // The factors that turn exponentials into gradients, one for each block of each row of a group.
    float* factors;
    float* sums;  // the sums of each class's gradients
  };
  std::size_t part_bytes() const {
    const std::size_t floats = std::size_t(kGroupRows * blocks() + classes_);
    return round_up(std::size_t(blocks()) * sizeof(BlockOfExp) + floats * sizeof(float),
                    kBufferAlignment);
  }
  Part part_of(const KernelCall& call, std::int64_t i) const {
    std::byte* memory = call.scratch.data() + std::size_t(i) * part_bytes();
    auto* exps = reinterpret_cast<BlockOfExp*>(memory);
    auto* factors = reinterpret_cast<float*>(exps + blocks());
    return {exps, factors, factors + kGroupRows * blocks()};
  }

  void group(const KernelCall& call, std::int64_t begin, std::int64_t end, const Part& part) const {
    for (std::int64_t r = begin; r < end; ++r) {
      exp_of_row(call, r, part.exps, part.factors + (r - begin) * blocks());
    }
    float* y = call.outputs[0].as<float>();
    std::array<ScaledRow, kGroupRows> rows;
    for (std::int64_t block = 0; block < blocks(); ++block) {
      const std::int64_t first = block * kBlockClasses;
      for (std::int64_t r = begin; r < end; ++r) {
        rows[std::size_t(r - begin)] = {y + r * classes_ + first,
                                        part.factors[(r - begin) * blocks() + block]};
      }
      scale_and_add({rows.data(), std::size_t(end - begin)}, part.sums + first, block_size(block));
    }
    for (std::int64_t r = begin; r < end; ++r) {
      const std::int32_t label = call.inputs[1].as<std::int32_t>()[r];
      const float gradient = call.inputs[2].as<float>()[r];
      take_wanted(y + r * classes_, label, gradient);
      take_wanted(part.sums, label, gradient);
    }
  }

  std::int64_t block_size(std::int64_t block) const {
    return std::min(kBlockClasses, classes_ - block * kBlockClasses);
  }

  // Computes, for row r, the exponentials of each block, the factor of each block, and the loss.
  void exp_of_row(const KernelCall& call, std::int64_t r, BlockOfExp* exps, float* factors) const {
    const float* biases = biased_ ? call.inputs[3].as<float>() : nullptr;
    const float* x = call.inputs[0].as<float>() + r * classes_;
    float* y = call.outputs[0].as<float>() + r * classes_;
    const std::int32_t label = call.inputs[1].as<std::int32_t>()[r];
    // Reads x before y is written, since y may be x.
    double wanted = wanted_logit(x, biased_ ? x[label] + biases[label] : x[label]);
    if (biased_ && wanted_.of_each != 0) wanted += wanted_.of_each * vector_sum(biases, classes_);
    float largest = std::numeric_limits<float>::lowest();
    for (std::int64_t block = 0; block < blocks(); ++block) {
      const std::int64_t first = block * kBlockClasses;
      exps[block] = exp_of_block(x + first, biased_ ? biases + first : nullptr, y + first,
                                 x + first + classes_, block_size(block));
      largest = std::max(largest, exps[block].shift);
    }
    double sum = 0;
    for (std::int64_t block = 0; block < blocks(); ++block) {
      factors[block] = float(std::exp(double(exps[block].shift) - largest));
      sum += exps[block].sum * factors[block];
    }
    const double gradient = call.inputs[2].as<float>()[r];
    for (std::int64_t block = 0; block < blocks(); ++block) {
      factors[block] = float(gradient / sum * factors[block]);
    }
    call.outputs[1].as<float>()[r] = float(largest + std::log(sum) - wanted);
  }

  void add_parts(const KernelCall& call, float* total) const {
    pool_.parallel_for(classes_, kRowsGrain, [&](std::int64_t begin, std::int64_t end) {
      std::fill(total + begin, total + end, 0.0f);
      for (std::int64_t i = 0; i < parts_; ++i) {
        vector_binary(BinaryFunction::kAdd, 0, {total + begin}, {part_of(call, i).sums + begin},
                      total + begin, end - begin);
      }
    });
  }

  const bool biased_;
  const std::int64_t parts_;
};

class MeanSquaredErrorKernel : public Kernel {
 public:
  MeanSquaredErrorKernel(const Node& node, ThreadPool& pool) : pool_(pool) {
    sum_.add_input(node.input(0).shape().elements());
  }
  std::size_t scratch_bytes() const override { return sum_.scratch_bytes(); }
  void run(const KernelCall& call) override {
    const float *a = call.inputs[0].as<float>(), *b = call.inputs[1].as<float>();
    const double sum = sum_.run(pool_, call.scratch, [&](const BlockSum::Block& block) {
      return sum_squared_differences(a + block.begin, b + block.begin, block.size);
    });
    *call.outputs[0].as<float>() = float(sum / double(call.inputs[0].shape.elements()));
  }

 private:
  ThreadPool& pool_;
  BlockSum sum_;
};

class MeanSquaredErrorGradKernel : public Kernel {
 public:
  MeanSquaredErrorGradKernel(const Node&, ThreadPool& pool) : pool_(pool) {}
  void run(const KernelCall& call) override {
    const float *a = call.inputs[0].as<float>(), *b = call.inputs[1].as<float>();
    const std::int64_t n = call.inputs[0].shape.elements();
    const float factor = *call.inputs[2].as<float>() * 2 / float(n);
    float* out = call.outputs[0].as<float>();
    pool_.parallel_for(n, kRowsGrain, [&](std::int64_t begin, std::int64_t end) {
      scaled_difference(a + begin, b + begin, factor, out + begin, end - begin);
    });
  }

 private:
  ThreadPool& pool_;
};

}  // namespace

void add_cpu_loss_kernels(KernelTable& table) {
  table.add("softmax_cross_entropy", make_float_kernel_of<SoftmaxCrossEntropyKernel>);
  table.add("softmax_cross_entropy_grad", make_float_kernel_of<SoftmaxCrossEntropyGradKernel>);
  table.add("softmax_cross_entropy_with_grad",
            make_float_kernel_of<SoftmaxCrossEntropyWithGradKernel>);
  table.add("mean_squared_error", make_float_kernel_of<MeanSquaredErrorKernel>);
  table.add("mean_squared_error_grad", make_float_kernel_of<MeanSquaredErrorGradKernel>);
}

}  // namespace paceline
