#include <tuple>
#include <vector>

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
  return GemmShape::packed(c[-2], c[-1], node.input(0).shape()[ta ? -2 : -1], ta, tb);
}

/// Writes a product into its output, or panel by panel into a sink.
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

/// Products of the matrices in the last two dimensions. If there are at least as many products as
/// threads, each thread computes whole products. Otherwise all threads together compute one product
/// after the other.
class BatchMatmulKernel : public Kernel {
 public:
  BatchMatmulKernel(const Node& node, ThreadPool& pool)
      : pool_(pool), alone_(1), shape_(shape_of(node)), products_(products_of(node)) {
    if (products_ < pool.threads()) {
      lanes_.emplace_back(shape_, pool);
      return;
    }
    for (int i = 0; i < pool.threads(); ++i) lanes_.emplace_back(shape_, alone_);
  }

  std::size_t scratch_bytes() const override { return lanes_.size() * lane_bytes(); }
  void run(const KernelCall& call) override {
    const std::int64_t lanes = std::int64_t(lanes_.size());
    auto run_lane = [&](std::int64_t lane) {
      const std::int64_t end = products_ * (lane + 1) / lanes;
      for (std::int64_t i = products_ * lane / lanes; i < end; ++i) {
        run_product(call, i, std::size_t(lane));
      }
    };
    if (lanes == 1) return run_lane(0);
    pool_.run_tiles(lanes, TileFunction(run_lane));
  }

 private:
  static std::int64_t products_of(const Node& node) {
    const Shape& c = node.outputs()[0].shape;
    std::int64_t products = 1;
    for (int d = 0; d + 2 < c.rank(); ++d) products *= c[d];
    return products;
  }
  std::size_t lane_bytes() const { return round_up(lanes_[0].scratch_bytes(), kBufferAlignment); }
  void run_product(const KernelCall& call, std::int64_t i, std::size_t lane) {
    const auto [m, n, k] = std::tuple(shape_.m, shape_.n, shape_.k);
    lanes_[lane].run(call.inputs[0].as<float>() + i * m * k, call.inputs[1].as<float>() + i * k * n,
                     call.outputs[0].as<float>() + i * m * n,
                     call.scratch.subspan(lane * lane_bytes(), lane_bytes()));
  }

  ThreadPool& pool_;
  ThreadPool alone_;
  const GemmShape shape_;
  const std::int64_t products_;
  std::vector<Gemm> lanes_;
};

/// The product of bfloat16 operands. The kernel widens them to float32 first if this is faster.
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
  table.add("batch_matmul", make_float_kernel_of<BatchMatmulKernel>);
  table.add("matmul_bfloat16", make_kernel_of<Bfloat16MatmulKernel>);
}

}  // namespace paceline
