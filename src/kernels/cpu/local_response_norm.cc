// Local response normalisation of images whose channels lie last, in float32.
#include <algorithm>

#include "base/buffer.h"
#include "kernels/cpu/claimed_tiles.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/response_norm_rows.h"
#include "ops/image.h"
#include "paceline/op.h"

namespace paceline {

namespace {

class ResponseNormKernel : public Kernel {
 public:
  ResponseNormKernel(const Node& node, ThreadPool& pool)
      : channels_(node.outputs()[0].shape[3]),
        rows_(node.outputs()[0].shape.elements() / channels_),
        gradient_(node.inputs().size() == 2),
        numbers_(numbers_of(node.attributes(), channels_)),
        pool_(pool) {}

  std::size_t scratch_bytes() const override { return lanes_of(pool_, tiles()) * lane_bytes(); }

  void run(const KernelCall& call) override {
    claim_tiles(pool_, tiles(), [&](std::size_t lane, std::size_t i) {
      const std::int64_t tile = std::int64_t(i), begin = rows_ * tile / std::int64_t(tiles());
      const std::int64_t rows = rows_ * (tile + 1) / std::int64_t(tiles()) - begin;
      run_rows(call, begin * channels_, rows,
               reinterpret_cast<float*>(call.scratch.data() + lane * lane_bytes()));
    });
  }

 private:
  static constexpr std::int64_t kTileElements = 32 * 1024;

  // A radius that reaches beyond all channels has the effect of one that reaches the last.
  static ResponseNormNumbers numbers_of(const Attributes& attributes, std::int64_t channels) {
    return {std::min(attributes.get<std::int64_t>("radius"), channels - 1),
            float(attributes.get<double>("bias")), float(attributes.get<double>("alpha")),
            float(attributes.get<double>("beta"))};
  }
  std::size_t tiles() const {
    return std::size_t((rows_ * channels_ + kTileElements - 1) / kTileElements);
  }
  std::size_t lane_bytes() const {
    const std::int64_t floats = response_norm_scratch(channels_, numbers_.radius);
    return round_up(std::size_t(floats) * sizeof(float), kBufferAlignment);
  }
  void run_rows(const KernelCall& call, std::int64_t first, std::int64_t rows, float* scratch) {
    const float* x = call.inputs[gradient_ ? 1 : 0].as<float>() + first;
    float* y = call.outputs[0].as<float>() + first;
    if (!gradient_) return response_norm_rows(x, rows, channels_, numbers_, scratch, y);
    response_norm_rows_grad(call.inputs[0].as<float>() + first, x, rows, channels_, numbers_,
                            scratch, y);
  }

  const std::int64_t channels_, rows_;
  const bool gradient_;
  const ResponseNormNumbers numbers_;
  ThreadPool& pool_;
};

/// Returns null if the channels of the images do not lie last: naive kernels compute such nodes.
std::unique_ptr<Kernel> make_response_norm(const Node& node, ThreadPool& pool) {
  if (!channels_last(node.attributes())) return nullptr;
  return make_float_kernel_of<ResponseNormKernel>(node, pool);
}

}  // namespace

void add_cpu_local_response_norm_kernels(KernelTable& table) {
  table.add("local_response_norm", make_response_norm);
  table.add("local_response_norm_grad", make_response_norm);
}

}  // namespace paceline
