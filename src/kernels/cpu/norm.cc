#include <cmath>

#include "kernels/cpu/block_sum.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/loss_rows.h"

namespace paceline {

namespace {

class GlobalNormKernel : public Kernel {
 public:
  GlobalNormKernel(const Node& node, ThreadPool& pool) : pool_(pool) {
    for (const Value& input : node.inputs()) sum_.add_input(input.shape().elements());
  }
  std::size_t scratch_bytes() const override { return sum_.scratch_bytes(); }
  void run(const KernelCall& call) override {
    const double sum = sum_.run(pool_, call.scratch, [&](const BlockSum::Block& block) {
      return sum_squares(call.inputs[block.input].as<float>() + block.begin, block.size);
    });
    *call.outputs[0].as<float>() = float(std::sqrt(sum));
  }

 private:
  ThreadPool& pool_;
  BlockSum sum_;
};

}  // namespace

void add_cpu_norm_kernels(KernelTable& table) {
  table.add("global_norm", make_float_kernel_of<GlobalNormKernel>);
}

}  // namespace paceline
