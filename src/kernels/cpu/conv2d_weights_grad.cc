// Gradients of the weights and biases of convolutions, in float32. Each slice of the images gives
// gradients of its own, which are then summed in slice order. The slices depend on the shapes
// alone, so results do not depend on the number of threads.
#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "kernels/cpu/conv2d_kernel.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/grains.h"
#include "kernels/cpu/vector_math.h"

namespace paceline {

namespace {

class Conv2dWeightsGradKernel : public ConvKernel {
 public:
  Conv2dWeightsGradKernel(const Node& node, ThreadPool& pool)
      : ConvKernel({node, node.input(0), node.input(1), node.outputs()[0].shape}, pool),
        biased_(node.outputs().size() == 2) {
    make_with([&] { make(); });
  }

  std::size_t scratch_bytes() const override {
    return calls_.size() * slice_bytes() + lanes_of(pool_, calls_.size()) * lane_bytes();
  }

  void run(const KernelCall& call) override {
    if (calls_.empty()) return clear(call);
    std::byte* const lanes = call.scratch.data() + calls_.size() * slice_bytes();
    claim_tiles(pool_, calls_.size(), [&](std::size_t lane, std::size_t i) {
      run_slice(call, i, lanes + lane * lane_bytes());
    });
    sum_slices(call.scratch, 0, weights_bytes_);
    run_call(*unpack_, {call.scratch.data(), call.outputs[0].data});
    if (!biased_) return;
    sum_slices(call.scratch, weights_bytes_, biases_bytes_);
    std::copy_n(reinterpret_cast<const float*>(call.scratch.data() + weights_bytes_), s_.y.c,
                call.outputs[1].as<float>());
  }

 private:
  // Each slice needs memory for its gradients. So there are many slices if the gradients are small,
  // and few if the gradients are so large that saving memory is worth more than sharing the work
  // evenly among threads.
  static constexpr std::int64_t kMostSlices = 16, kUsualSlices = 8, kFewestSlices = 2;
  static constexpr std::int64_t kSmallSlices = std::int64_t{1} << 20;  // total bytes
  static constexpr std::int64_t kMostSliceBytes = std::int64_t{64} << 20;

  std::size_t slice_bytes() const { return weights_bytes_ + biases_bytes_; }
  std::size_t lane_bytes() const { return x_bytes_ + dy_bytes_ + pad_bytes_; }

  std::int64_t slices_of_images() const {
    const std::int64_t bytes =
        std::max<std::int64_t>(s_.weights.elements() * std::int64_t(sizeof(float)), 1);
    std::int64_t slices = std::clamp(kSmallSlices / bytes, kUsualSlices, kMostSlices);
    slices = std::clamp(kMostSliceBytes / bytes, kFewestSlices, slices);
    return std::min(s_.x.n, slices);
  }

  void run_slice(const KernelCall& call, std::size_t i, std::byte* lane) {
    std::byte* const slice = call.scratch.data() + i * slice_bytes();
    const auto [first, count] = std::pair(slices_[i].begin, slices_[i].size());
    const float* const x = call.inputs[0].as<float>() + first * s_.elements_of_x();
    const float* const dy = call.inputs[1].as<float>() + first * s_.elements_of_y();
    if (!s_.rounds) {
      fetch(s_.x, x, count);
      fetch(s_.y, dy, count);
    }
    run_call(calls_[i], {operand(s_.x, x, count, lane), operand(s_.y, dy, count, lane + x_bytes_),
                         slice, slice + weights_bytes_, lane + x_bytes_ + dy_bytes_});
  }

  void make() {
    Desc weights = s_.any_weights(kFloat);
    for (const ImageRange slice : cut_images(s_.x.n, slices_of_images())) {
      const auto forward =
          forward_desc(slice.size(), s_.any_weights(s_.operands), biased_, std::nullopt);
      const dnnl::convolution_backward_weights::primitive_desc desc(
          {dnnl::algorithm::convolution_direct, s_.image(s_.x, slice.size(), s_.operands), weights,
           s_.biases(biased_), s_.image(s_.y, slice.size(), s_.operands), s_.strides(),
           s_.dilations(), s_.pads_before(), s_.pads_after()},
          convolution_attributes(std::nullopt), engine_, forward);
      if (calls_.empty()) set_layout(weights = desc.diff_weights_desc());
      add_slice(slice, desc.scratchpad_desc());
      calls_.emplace_back(
          dnnl::convolution_backward_weights(desc), engine_,
          std::array<OneDnnCall<5>::Operand, 5>{{{DNNL_ARG_SRC, desc.src_desc()},
                                                 {DNNL_ARG_DIFF_DST, desc.diff_dst_desc()},
                                                 {DNNL_ARG_DIFF_WEIGHTS, weights},
                                                 {DNNL_ARG_DIFF_BIAS, desc.diff_bias_desc()},
                                                 {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()}}});
    }
  }

  void add_slice(ImageRange slice, const Desc& scratchpad) {
    slices_.push_back(slice);
    x_bytes_ = std::max(x_bytes_, operand_bytes(s_.x, slice.size()));
    dy_bytes_ = std::max(dy_bytes_, operand_bytes(s_.y, slice.size()));
    pad_bytes_ = std::max(pad_bytes_, round_up(scratchpad.get_size(), kBufferAlignment));
  }

  void set_layout(const Desc& weights) {
    weights_bytes_ = round_up(weights.get_size(), kBufferAlignment);
    biases_bytes_ = biased_ ? round_up(std::size_t(s_.y.c) * sizeof(float), kBufferAlignment) : 0;
    unpack_.emplace(reorder(weights, s_.plain_weights(kFloat)));
  }

  // Adds all slices to the first one, including the padding after each array.
  void sum_slices(std::span<std::byte> scratch, std::size_t offset, std::size_t bytes) {
    auto* const sum = reinterpret_cast<float*>(scratch.data() + offset);
    pool_.parallel_for(std::int64_t(bytes / sizeof(float)), kElementsGrain,
                       [&](std::int64_t begin, std::int64_t end) {
                         for (std::size_t i = 1; i < calls_.size(); ++i) {
                           const float* slice = sum + i * slice_bytes() / sizeof(float);
                           vector_binary(BinaryFunction::kAdd, 0, {sum + begin}, {slice + begin},
                                         sum + begin, end - begin);
                         }
                       });
  }

  static void clear(const KernelCall& call) {
    for (const TensorView& output : call.outputs) {
      std::fill_n(output.as<float>(), output.shape.elements(), 0.0f);
    }
  }

  const bool biased_;
  std::vector<ImageRange> slices_;
  std::vector<OneDnnCall<5>> calls_;  // by slice
  std::optional<Reorder> unpack_;
  std::size_t weights_bytes_ = 0, biases_bytes_ = 0;        // of one slice
  std::size_t x_bytes_ = 0, dy_bytes_ = 0, pad_bytes_ = 0;  // of one lane
};

}  // namespace

void add_cpu_conv2d_weights_grad_kernel(KernelTable& table) {
  table.add("conv2d_weights_grad", make_float_kernel_of<Conv2dWeightsGradKernel>);
}

}  // namespace paceline
