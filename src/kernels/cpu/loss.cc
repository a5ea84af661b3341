#include <algorithm>
#include <cmath>

#include "kernels/cpu/block_sum.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/loss_rows.h"
#include "kernels/cpu/vector_math.h"
#include "kernels/index_check.h"

namespace paceline {

namespace {

constexpr std::int64_t kLossGrain = 8192;  // elements that are worth a thread

// What the loss and its gradient share: rows of logits and their labels.
class LossKernel : public Kernel {
 public:
  LossKernel(const Node& node, ThreadPool& pool)
      : node_(node),
        pool_(pool),
        rows_(node.input(0).shape()[0]),
        classes_(node.input(0).shape()[1]) {}

 protected:
  template <typename F>
  void for_rows(const KernelCall& call, F&& f) {
    const std::span labels(call.inputs[1].as<std::int32_t>(), std::size_t(rows_));
    check_indices(node_, "label", labels, classes_);
    const std::int64_t grain = (kLossGrain + classes_ - 1) / classes_;
    pool_.parallel_for(rows_, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) f(r, labels[std::size_t(r)]);
    });
  }

  const Node& node_;
  ThreadPool& pool_;
  const std::int64_t rows_, classes_;
};

class SoftmaxCrossEntropyKernel : public LossKernel {
 public:
  using LossKernel::LossKernel;
  void run(const KernelCall& call) override {
    for_rows(call, [&](std::int64_t r, std::int32_t label) {
      const float* x = call.inputs[0].as<float>() + r * classes_;
      const float largest = vector_max(x, classes_);
      const double log_sum = largest + std::log(sum_exp(x, largest, classes_));
      call.outputs[0].as<float>()[r] = float(log_sum - x[label]);
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
      dx[label] -= gradient;
    });
  }
};

// Row by row while it is in the cache. The gradients of the biases are summed by parts of rows, the
// same in every step, and then over the parts in order.
class SoftmaxCrossEntropyWithGradKernel : public LossKernel {
 public:
  SoftmaxCrossEntropyWithGradKernel(const Node& node, ThreadPool& pool)
      : LossKernel(node, pool),
        biased_(node.inputs().size() == 4),
        parts_(std::min<std::int64_t>(rows_, pool.threads() == 1 ? 1 : 2 * pool.threads())) {}

  std::size_t scratch_bytes() const override {
    return std::size_t(parts_ * classes_) * sizeof(float);
  }

  void run(const KernelCall& call) override {
    const std::span labels(call.inputs[1].as<std::int32_t>(), std::size_t(rows_));
    check_indices(node_, "label", labels, classes_);
    auto* sums = reinterpret_cast<float*>(call.scratch.data());
    auto part = [&](std::int64_t i) {
      float* own = sums + i * classes_;
      std::fill_n(own, classes_, 0.0f);
      for (std::int64_t r = rows_ * i / parts_; r < rows_ * (i + 1) / parts_; ++r) {
        row(call, r, labels[std::size_t(r)], own);
      }
    };
    pool_.run_tiles(parts_, TileFunction(part));
    if (biased_) add_parts(sums, call.outputs[2].as<float>());
  }

 private:
  void row(const KernelCall& call, std::int64_t r, std::int32_t label, float* sums) const {
    const float* biases = biased_ ? call.inputs[3].as<float>() : nullptr;
    float* y = call.outputs[0].as<float>() + r * classes_;
    const float largest =
        add_and_max(call.inputs[0].as<float>() + r * classes_, biases, y, classes_);
    const float wanted = y[label];
    const double sum = exp_and_sum(y, largest, classes_);
    const float gradient = call.inputs[2].as<float>()[r];
    scale_and_add(y, float(gradient / sum), sums, classes_);
    y[label] -= gradient;
    sums[label] -= gradient;
    call.outputs[1].as<float>()[r] = float(largest + std::log(sum) - wanted);
  }

  void add_parts(const float* sums, float* total) const {
    pool_.parallel_for(classes_, kLossGrain, [&](std::int64_t begin, std::int64_t end) {
      std::fill(total + begin, total + end, 0.0f);
      for (std::int64_t i = 0; i < parts_; ++i) {
        vector_binary(BinaryFunction::kAdd, 0, {total + begin}, {sums + i * classes_ + begin},
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
    pool_.parallel_for(n, kLossGrain, [&](std::int64_t begin, std::int64_t end) {
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
