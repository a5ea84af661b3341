#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/gemm.h"

namespace paceline {

namespace {

GemmShape shape_of(const Node& node) {
  const bool ta = node.attributes().get<bool>("transpose_a");
  const bool tb = node.attributes().get<bool>("transpose_b");
  const Shape& c = node.outputs()[0].shape;
  return GemmShape::packed(c[0], c[1], node.input(0).shape()[ta ? 0 : 1], ta, tb);
}

class MatmulKernel : public Kernel {
 public:
  MatmulKernel(const Node& node, ThreadPool& pool) : gemm_(shape_of(node), pool) {}

  std::size_t scratch_bytes() const override { return gemm_.scratch_bytes(); }
  void run(const KernelCall& call) override {
    gemm_.run(call.inputs[0].as<float>(), call.inputs[1].as<float>(), call.outputs[0].as<float>(),
              call.scratch);
  }

 private:
  Gemm gemm_;
};

}  // namespace

void add_cpu_matmul_kernels(KernelTable& table) {
  table.add("matmul", make_float_kernel_of<MatmulKernel>);
}

}  // namespace paceline
