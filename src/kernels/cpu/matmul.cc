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

/// A product into its output, or, panel by panel, into a sink.
class StreamingProduct {
 public:
  StreamingProduct(const GemmShape& shape, ThreadPool& pool) : gemm_(shape, pool) {}

  bool stream_output() { return streams_ = gemm_.streams(); }
  std::size_t scratch_bytes() const {
    return streams_ ? gemm_.stream_scratch_bytes() : gemm_.scratch_bytes();
  }
  void run(const void* a, const void* b, const KernelCall& call, std::span<std::byte> scratch) {
    if (streams_) return gemm_.stream(a, b, *call.sink, scratch);
    gemm_.run(a, b, call.outputs[0].as<float>(), scratch);
  }

 private:
  Gemm gemm_;
  bool streams_ = false;
};

class MatmulKernel : public Kernel {
 public:
  MatmulKernel(const Node& node, ThreadPool& pool) : product_(shape_of(node), pool) {}

  bool stream_output() override { return product_.stream_output(); }
  std::size_t scratch_bytes() const override { return product_.scratch_bytes(); }
  void run(const KernelCall& call) override {
    product_.run(call.inputs[0].as<float>(), call.inputs[1].as<float>(), call, call.scratch);
  }

 private:
  StreamingProduct product_;
};

/// Of bfloat16 operands, which are widened to float32 where that is faster.
class Bfloat16MatmulKernel : public Kernel {
 public:
  Bfloat16MatmulKernel(const Node& node, ThreadPool& pool)
      : pool_(pool), product_(lowered(shape_of(node)), pool) {
    if (product_dtype(DType::kBFloat16) == DType::kBFloat16) return;
    a_bytes_ = widened_bytes(node.input(0));
    b_bytes_ = widened_bytes(node.input(1));
  }

  bool stream_output() override { return product_.stream_output(); }
  std::size_t scratch_bytes() const override {
    return a_bytes_ + b_bytes_ + product_.scratch_bytes();
  }
  void run(const KernelCall& call) override {
    const std::span<std::byte> a = call.scratch.first(a_bytes_);
    const std::span<std::byte> b = call.scratch.subspan(a_bytes_, b_bytes_);
    product_.run(operand(call.inputs[0], a), operand(call.inputs[1], b), call,
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
  StreamingProduct product_;
  std::size_t a_bytes_ = 0, b_bytes_ = 0;
};

}  // namespace

void add_cpu_matmul_kernels(KernelTable& table) {
  table.add("matmul", make_float_kernel_of<MatmulKernel>);
  table.add("matmul_bfloat16", make_kernel_of<Bfloat16MatmulKernel>);
}

}  // namespace paceline
