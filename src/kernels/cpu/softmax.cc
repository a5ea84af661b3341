#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/grains.h"
#include "kernels/cpu/loss_rows.h"
#include "kernels/cpu/vector_math.h"

namespace paceline {

namespace {

// The base of softmax and its gradient, which go through rows of the last dimension.
class SoftmaxRows : public Kernel {
 public:
  SoftmaxRows(const Node& node, ThreadPool& pool)
      : columns_(node.outputs()[0].shape[-1]),
        rows_(columns_ == 0 ? 0 : node.outputs()[0].shape.elements() / columns_),
        pool_(pool) {}

 protected:
  template <typename F>
  void for_rows(const F& f) {
    pool_.parallel_for(rows_, rows_grain(columns_), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) f(r * columns_);
    });
  }

  const std::int64_t columns_, rows_;
  ThreadPool& pool_;
};

class SoftmaxKernel : public SoftmaxRows {
 public:
  using SoftmaxRows::SoftmaxRows;
  void run(const KernelCall& call) override {
    for_rows([&](std::int64_t first) {
      const float* x = call.inputs[0].as<float>() + first;
      float* y = call.outputs[0].as<float>() + first;
      const double sum = exp_of_block(x, nullptr, y, x, columns_).sum;
      vector_unary(UnaryFunction::kScale, float(1 / sum), y, y, columns_);
    });
  }
};

/// Computes dx = y·(dy − Σ dy·y).
class SoftmaxGradKernel : public SoftmaxRows {
 public:
  using SoftmaxRows::SoftmaxRows;
  void run(const KernelCall& call) override {
    for_rows([&](std::int64_t first) {
      const float* dy = call.inputs[0].as<float>() + first;
      const float* y = call.inputs[1].as<float>() + first;
      float* dx = call.outputs[0].as<float>() + first;
      const float sum = float(sum_products(dy, y, columns_));
      vector_binary(BinaryFunction::kSub, 0, {dy}, {&sum, true}, dx, columns_);
      vector_binary(BinaryFunction::kMul, 0, {dx}, {y}, dx, columns_);
    });
  }
};

}  // namespace

void add_cpu_softmax_kernels(KernelTable& table) {
  table.add("softmax", make_float_kernel_of<SoftmaxKernel>);
  table.add("softmax_grad", make_float_kernel_of<SoftmaxGradKernel>);
}

}  // namespace paceline
