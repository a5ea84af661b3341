// Convolutions in float32, and the gradients of their images. oneDNN computes ranges of images,
// each on one thread, and the pool's threads claim the ranges. The ranges depend on the shapes
// alone, so results do not depend on the number of threads. Images may have either layout; with
// their channels last, they are faster.
#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "kernels/cpu/conv2d_kernel.h"
#include "kernels/cpu/cpu_kernels.h"

namespace paceline {

namespace {

// The wanted FLOPs of a tile: waking a thread pays if its tile takes some 100 µs or more.
constexpr double kTileFlops = 2e7;
// oneDNN is called once for each tile, and each call is prepared when the kernel is made. For any
// batch that fits into memory, preparing more than kMostTiles calls would take longer than they
// save.
constexpr std::int64_t kFewestTiles = 8, kMostTiles = 512;

std::vector<ImageRange> image_tiles(const ConvShape& s) {
  const double wanted = s.flops_of_image() * double(s.x.n) / kTileFlops;
  const auto tiles = std::int64_t(std::clamp(wanted, double(kFewestTiles), double(kMostTiles)));
  return cut_images(s.x.n, std::clamp<std::int64_t>(tiles, 0, s.x.n));
}

/// The base class of the passes that compute images, range by range: the convolution and the
/// gradient of its input.
class ImageKernel : public ConvKernel {
 public:
  using ConvKernel::ConvKernel;

  std::size_t scratch_bytes() const override {
    return rounded_bytes_ + packed_bytes_ + lanes_of(pool_, ranges_.size()) * lane_bytes();
  }

 protected:
  /// A range of images, and the memory of the thread that makes it.
  struct Tile {
    ImageRange images;
    const void* weights;
    std::byte *operand, *scratchpad;
  };

  /// `packed` describes the weights as oneDNN wants them.
  void set_packed(const Desc& packed) {
    rounded_bytes_ = cast_.bytes(s_.weights.elements());
    const Desc plain = s_.plain_weights(s_.operands);
    if (packed == plain) return;
    packed_bytes_ = round_up(packed.get_size(), kBufferAlignment);
    pack_.emplace(reorder(plain, packed));
  }
  /// `read` has the extents of the images that the pass multiplies by the weights.
  void add_range(ImageRange range, const ImageShape& read, const Desc& scratchpad) {
    ranges_.push_back(range);
    operand_bytes_ = std::max(operand_bytes_, operand_bytes(read, range.size()));
    pad_bytes_ = std::max(pad_bytes_, round_up(scratchpad.get_size(), kBufferAlignment));
  }
  /// Calls run(i, tile) for each range, on the threads of the pool.
  template <typename F>
  void for_ranges(const float* weights, std::span<std::byte> scratch, const F& run) {
    if (ranges_.empty()) return;
    const void* const packed = pack(weights, scratch);
    std::byte* const lanes = scratch.data() + rounded_bytes_ + packed_bytes_;
    claim_tiles(pool_, ranges_.size(), [&](std::size_t lane, std::size_t i) {
      std::byte* const own = lanes + lane * lane_bytes();
      run(i, Tile{ranges_[i], packed, own, own + operand_bytes_});
    });
  }

 private:
  std::size_t lane_bytes() const { return operand_bytes_ + pad_bytes_; }

  const void* pack(const float* weights, std::span<std::byte> scratch) {
    const void* const rounded =
        cast_.cast(weights, s_.weights.elements(), scratch.first(rounded_bytes_));
    if (!pack_) return rounded;
    const void* const packed = scratch.data() + rounded_bytes_;
    run_call(*pack_, {rounded, packed});
    return packed;
  }

  std::optional<Reorder> pack_;
  std::vector<ImageRange> ranges_;
  std::size_t rounded_bytes_ = 0, packed_bytes_ = 0;  // for the weights
  std::size_t operand_bytes_ = 0, pad_bytes_ = 0;     // for one lane
};

class Conv2dKernel : public ImageKernel {
 public:
  Conv2dKernel(const Node& node, ThreadPool& pool)
      : ImageKernel({node, node.input(0), node.output(0), node.input(1).shape()}, pool),
        biased_(node.inputs().size() == 3) {
    std::optional<float> slope;
    if (node.attributes().has("activation")) slope = slope_of(node.attributes());
    make_with([&] { make(slope); });
  }

  void run(const KernelCall& call) override {
    const float* x = call.inputs[0].as<float>();
    const float* biases = biased_ ? call.inputs[2].as<float>() : nullptr;
    float* y = call.outputs[0].as<float>();
    for_ranges(call.inputs[1].as<float>(), call.scratch, [&](std::size_t i, const Tile& tile) {
      const auto [begin, count] = std::pair(tile.images.begin, tile.images.size());
      const void* from = operand(s_.x, x + begin * s_.elements_of_x(), count, tile.operand);
      float* const to = y + begin * s_.elements_of_y();
      fetch(s_.y, to, count);
      run_call(calls_[i], {from, tile.weights, biases, to, tile.scratchpad});
    });
  }

 private:
  static float slope_of(const Attributes& attributes) {
    const bool relu = attributes.get<std::string>("activation") == "relu";
    return relu ? 0 : float(attributes.get<double>("slope"));
  }
  void make(std::optional<float> slope) {
    Desc weights = s_.any_weights(s_.operands);
    for (const ImageRange range : image_tiles(s_)) {
      const auto desc = forward_desc(range.size(), weights, biased_, slope);
      if (calls_.empty()) set_packed(weights = desc.weights_desc());
      add_range(range, s_.x, desc.scratchpad_desc());
      calls_.emplace_back(
          dnnl::convolution_forward(desc), engine_,
          std::array<OneDnnCall<5>::Operand, 5>{{{DNNL_ARG_SRC, desc.src_desc()},
                                                 {DNNL_ARG_WEIGHTS, weights},
                                                 {DNNL_ARG_BIAS, desc.bias_desc()},
                                                 {DNNL_ARG_DST, desc.dst_desc()},
                                                 {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()}}});
    }
  }

  const bool biased_;
  std::vector<OneDnnCall<5>> calls_;  // by range
};

class Conv2dInputGradKernel : public ImageKernel {
 public:
  Conv2dInputGradKernel(const Node& node, ThreadPool& pool)
      : ImageKernel({node, node.output(0), node.input(0), node.input(1).shape()}, pool) {
    make_with([&] { make(); });
  }

  void run(const KernelCall& call) override {
    const float* dy = call.inputs[0].as<float>();
    float* dx = call.outputs[0].as<float>();
    for_ranges(call.inputs[1].as<float>(), call.scratch, [&](std::size_t i, const Tile& tile) {
      const auto [begin, count] = std::pair(tile.images.begin, tile.images.size());
      const void* from = operand(s_.y, dy + begin * s_.elements_of_y(), count, tile.operand);
      run_call(calls_[i], {dx + begin * s_.elements_of_x(), tile.weights, from, tile.scratchpad});
    });
  }

 private:
  void make() {
    Desc weights = s_.any_weights(s_.operands);
    for (const ImageRange range : image_tiles(s_)) {
      const auto forward =
          forward_desc(range.size(), s_.any_weights(s_.operands), false, std::nullopt);
      const dnnl::convolution_backward_data::primitive_desc desc(
          {dnnl::algorithm::convolution_direct, s_.image(s_.x, range.size(), kFloat), weights,
           s_.image(s_.y, range.size(), s_.operands), s_.strides(), s_.dilations(),
           s_.pads_before(), s_.pads_after()},
          convolution_attributes(std::nullopt), engine_, forward);
      if (calls_.empty()) set_packed(weights = desc.weights_desc());
      add_range(range, s_.y, desc.scratchpad_desc());
      calls_.emplace_back(
          dnnl::convolution_backward_data(desc), engine_,
          std::array<OneDnnCall<4>::Operand, 4>{{{DNNL_ARG_DIFF_SRC, desc.diff_src_desc()},
                                                 {DNNL_ARG_WEIGHTS, weights},
                                                 {DNNL_ARG_DIFF_DST, desc.diff_dst_desc()},
                                                 {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()}}});
    }
  }

  std::vector<OneDnnCall<4>> calls_;  // by range
};

}  // namespace

void add_cpu_conv2d_kernels(KernelTable& table) {
  table.add("conv2d", make_float_kernel_of<Conv2dKernel>);
  table.add("conv2d_activation", make_float_kernel_of<Conv2dKernel>);
  table.add("conv2d_input_grad", make_float_kernel_of<Conv2dInputGradKernel>);
}

}  // namespace paceline
