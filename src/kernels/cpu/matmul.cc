#include "base/buffer.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/instruction_set.h"
#include "kernels/cpu/operand_cast.h"

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

  bool stream_output() override { return streams_ = gemm_.streams(); }
  std::size_t scratch_bytes() const override {
    return streams_ ? gemm_.stream_scratch_bytes() : gemm_.scratch_bytes();
  }
  void run(const KernelCall& call) override {
    if (streams_) {
      return gemm_.stream(call.inputs[0].as<float>(), call.inputs[1].as<float>(), *call.sink,
                          call.scratch);
    }
    gemm_.run(call.inputs[0].as<float>(), call.inputs[1].as<float>(), call.outputs[0].as<float>(),
              call.scratch);
  }

 private:
  Gemm gemm_;
  bool streams_ = false;
};

/// Of bfloat16 operands, which are widened to float32 where that is faster.
class Bfloat16MatmulKernel : public Kernel {
 public:
  Bfloat16MatmulKernel(const Node& node, ThreadPool& pool)
      : pool_(pool), gemm_(lowered(shape_of(node)), pool) {
    if (product_dtype(DType::kBFloat16) == DType::kBFloat16) return;
    a_bytes_ = widened_bytes(node.input(0));
    b_bytes_ = widened_bytes(node.input(1));
  }

  std::size_t scratch_bytes() const override { return a_bytes_ + b_bytes_ + gemm_.scratch_bytes(); }
  void run(const KernelCall& call) override {
    const std::span<std::byte> a = call.scratch.first(a_bytes_);
    const std::span<std::byte> b = call.scratch.subspan(a_bytes_, b_bytes_);
    gemm_.run(operand(call.inputs[0], a), operand(call.inputs[1], b), call.outputs[0].as<float>(),
              call.scratch.subspan(a_bytes_ + b_bytes_));
  }

 private:
  static std::size_t widened_bytes(const Value& operand) {
    return round_up(std::size_t(operand.shape().elements()) * sizeof(float), kBufferAlignment);
  }
  const void* operand(const TensorView& x, std::span<std::byte> space) {
    if (space.empty()) return x.data;
    auto* wide = reinterpret_cast<float*>(space.data());
    widen_in_tiles(pool_, x.as<BFloat16>(), wide, x.shape.elements());
    return wide;
  }

  ThreadPool& pool_;
  Gemm gemm_;
  std::size_t a_bytes_ = 0, b_bytes_ = 0;
};

}  // namespace

void add_cpu_matmul_kernels(KernelTable& table) {
  table.add("matmul", make_float_kernel_of<MatmulKernel>);
  table.add("matmul_bfloat16", make_kernel_of<Bfloat16MatmulKernel>);
}

}  // namespace paceline
