// Convolutions in float32: oneDNN computes ranges of images, each on one thread, and the threads of
// the pool claim them. The ranges depend on the shapes alone, so that results do not depend on the
// number of threads. Images lie with their channels last where the plan wants it fast.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/buffer.h"
#include "kernels/cpu/claimed_tiles.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/onednn_call.h"
#include "kernels/cpu/vector_math.h"
#include "ops/image.h"
#include "paceline/error.h"

namespace paceline {

namespace {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;
constexpr auto kFloat = dnnl::memory::data_type::f32;
constexpr auto kDirect = dnnl::algorithm::convolution_direct;

struct ImageRange {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};

/// The numbers of a convolution, from the node of any of its passes.
struct ConvShape {
  ConvShape(const Node& node, const Value& x, const Value& y, const Shape& weights)
      : name(node.op().name),
        last(channels_last(node.attributes())),
        x(ImageShape::of(x.shape(), last)),
        y(ImageShape::of(y.shape(), last)),
        weights(weights),
        groups(node.attributes().get<std::int64_t>("groups")),
        window(Window2d::of(node.attributes())) {}

  /// `images` of them.
  Desc image(const ImageShape& of, std::int64_t images) const {
    return {{images, of.c, of.h, of.w},
            kFloat,
            last ? dnnl::memory::format_tag::nhwc : dnnl::memory::format_tag::nchw};
  }
  Dims weight_dims() const {
    if (groups == 1) return {weights[0], weights[1], weights[2], weights[3]};
    return {groups, weights[0] / groups, weights[1], weights[2], weights[3]};
  }
  Desc plain_weights() const {
    return {weight_dims(), kFloat,
            groups == 1 ? dnnl::memory::format_tag::oihw : dnnl::memory::format_tag::goihw};
  }
  Desc any_weights() const { return {weight_dims(), kFloat, dnnl::memory::format_tag::any}; }
  Desc biases(bool biased) const {
    return biased ? Desc({y.c}, kFloat, dnnl::memory::format_tag::x) : Desc();
  }
  Dims strides() const { return {window.strides[0], window.strides[1]}; }
  Dims dilations() const { return {window.dilations[0] - 1, window.dilations[1] - 1}; }
  Dims pads_before() const { return {window.pads[0], window.pads[1]}; }
  Dims pads_after() const { return {window.pads[2], window.pads[3]}; }

  std::int64_t elements_of_x() const { return x.c * x.h * x.w; }
  std::int64_t elements_of_y() const { return y.c * y.h * y.w; }
  double flops_of_image() const {
    return 2.0 * double(elements_of_y()) * double(weights[1] * weights[2] * weights[3]);
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::kInternal, fmt::format("[{}] oneDNN on {} with weights {}: {}", name,
                                                  x.shape(last).str(), weights.str(), what));
  }

  std::string name;
  bool last;
  ImageShape x, y;
  Shape weights;
  std::int64_t groups;
  Window2d window;
};

dnnl::primitive_attr attributes_with(std::optional<float> slope) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (!slope) return attributes;
  dnnl::post_ops activation;
  activation.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, *slope, 0);
  attributes.set_post_ops(activation);
  return attributes;
}

using ForwardDesc = dnnl::convolution_forward::primitive_desc;

ForwardDesc forward_desc(const ConvShape& s, std::int64_t images, const Desc& weights, bool biased,
                         std::optional<float> slope, const dnnl::engine& engine) {
  const dnnl::convolution_forward::desc desc(
      dnnl::prop_kind::forward_training, kDirect, s.image(s.x, images), weights, s.biases(biased),
      s.image(s.y, images), s.strides(), s.dilations(), s.pads_before(), s.pads_after());
  return {desc, attributes_with(slope), engine};
}

// A tile is worth handing to a thread from some 100 µs on, and there should be enough of them.
constexpr double kTileFlops = 2e7;
constexpr std::int64_t kFewestTiles = 8;

std::vector<ImageRange> cut(std::int64_t images, std::int64_t parts) {
  std::vector<ImageRange> ranges;
  for (std::int64_t i = 0; i < parts; ++i) {
    ranges.push_back({images * i / parts, images * (i + 1) / parts});
  }
  return ranges;
}

std::vector<ImageRange> image_tiles(const ConvShape& s) {
  const double wanted = s.flops_of_image() * double(s.x.n) / kTileFlops;
  const std::int64_t tiles = std::max(kFewestTiles, std::int64_t(wanted));
  return cut(s.x.n, std::clamp<std::int64_t>(tiles, 0, s.x.n));
}

/// The parts that all passes share: an engine, memory between them, and weights in oneDNN's layout.
class ConvKernel : public Kernel {
 public:
  ConvKernel(ConvShape shape, ThreadPool& pool) : s_(std::move(shape)), pool_(pool) {}

 protected:
  using Reorder = OneDnnCall<2>;

  /// Calls `make`, which makes primitives.
  template <typename F>
  void make_with(F&& make) {
    const OneThread guard;
    try {
      make();
    } catch (const dnnl::error& error) {
      s_.fail(error.what());
    }
  }
  template <std::size_t N>
  void run_call(OneDnnCall<N>& call, const void* const (&addresses)[N]) const {
    const dnnl_status_t status = call.run(addresses);
    if (status != dnnl_success) s_.fail(fmt::format("status {}", int(status)));
  }
  Reorder reorder(const Desc& from, const Desc& to) const {
    return {dnnl::reorder({engine_, from, engine_, to}),
            engine_,
            {{{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}}};
  }

  const ConvShape s_;
  ThreadPool& pool_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
};

/// The passes that make images, range by range: the convolution, and the gradient of its input.
class ImageKernel : public ConvKernel {
 public:
  using ConvKernel::ConvKernel;

  std::size_t scratch_bytes() const override {
    return packed_bytes_ + lanes_of(pool_, ranges_.size()) * lane_bytes_;
  }

 protected:
  void set_packed(const Desc& packed) {
    if (packed == s_.plain_weights()) return;
    packed_bytes_ = round_up(packed.get_size(), kBufferAlignment);
    pack_.emplace(reorder(s_.plain_weights(), packed));
  }
  void add_range(ImageRange range, const Desc& scratchpad) {
    ranges_.push_back(range);
    lane_bytes_ = std::max(lane_bytes_, round_up(scratchpad.get_size(), kBufferAlignment));
  }
  /// Calls run(i, range, weights, scratchpad) for each range, on the threads of the pool.
  template <typename F>
  void for_ranges(const float* weights, std::span<std::byte> scratch, const F& run) {
    const void* packed = weights;
    if (pack_) {
      packed = scratch.data();
      run_call(*pack_, {weights, packed});
    }
    claim_tiles(pool_, ranges_.size(), [&](std::size_t lane, std::size_t i) {
      run(i, ranges_[i], packed, scratch.data() + packed_bytes_ + lane * lane_bytes_);
    });
  }

 private:
  std::optional<Reorder> pack_;
  std::vector<ImageRange> ranges_;
  std::size_t packed_bytes_ = 0, lane_bytes_ = 0;
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
    for_ranges(call.inputs[1].as<float>(), call.scratch,
               [&](std::size_t i, ImageRange range, const void* weights, void* scratchpad) {
                 run_call(calls_[i], {x + range.begin * s_.elements_of_x(), weights, biases,
                                      y + range.begin * s_.elements_of_y(), scratchpad});
               });
  }

 private:
  static float slope_of(const Attributes& attributes) {
    const bool relu = attributes.get<std::string>("activation") == "relu";
    return relu ? 0 : float(attributes.get<double>("slope"));
  }
  void make(std::optional<float> slope) {
    Desc weights = s_.any_weights();
    for (const ImageRange range : image_tiles(s_)) {
      const ForwardDesc desc = forward_desc(s_, range.size(), weights, biased_, slope, engine_);
      if (calls_.empty()) set_packed(weights = desc.weights_desc());
      add_range(range, desc.scratchpad_desc());
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
    for_ranges(call.inputs[1].as<float>(), call.scratch,
               [&](std::size_t i, ImageRange range, const void* weights, void* scratchpad) {
                 run_call(calls_[i], {dx + range.begin * s_.elements_of_x(), weights,
                                      dy + range.begin * s_.elements_of_y(), scratchpad});
               });
  }

 private:
  void make() {
    Desc weights = s_.any_weights();
    for (const ImageRange range : image_tiles(s_)) {
      const ForwardDesc forward =
          forward_desc(s_, range.size(), s_.any_weights(), false, std::nullopt, engine_);
      const dnnl::convolution_backward_data::primitive_desc desc(
          {kDirect, s_.image(s_.x, range.size()), weights, s_.image(s_.y, range.size()),
           s_.strides(), s_.dilations(), s_.pads_before(), s_.pads_after()},
          attributes_with(std::nullopt), engine_, forward);
      if (calls_.empty()) set_packed(weights = desc.weights_desc());
      add_range(range, desc.scratchpad_desc());
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

// Each slice of the images gives gradients of its own, which are then summed in their order.
class Conv2dWeightsGradKernel : public ConvKernel {
 public:
  Conv2dWeightsGradKernel(const Node& node, ThreadPool& pool)
      : ConvKernel({node, node.input(0), node.input(1), node.outputs()[0].shape}, pool),
        biased_(node.outputs().size() == 2) {
    make_with([&] { make(); });
  }

  std::size_t scratch_bytes() const override {
    return calls_.size() * slice_bytes() + lanes_of(pool_, calls_.size()) * lane_bytes_;
  }

  void run(const KernelCall& call) override {
    float* biases = biased_ ? call.outputs[1].as<float>() : nullptr;
    if (calls_.empty()) return clear(call);
    claim_tiles(pool_, calls_.size(), [&](std::size_t lane, std::size_t i) {
      std::byte* const slice = call.scratch.data() + i * slice_bytes();
      std::byte* const scratchpad =
          call.scratch.data() + calls_.size() * slice_bytes() + lane * lane_bytes_;
      const std::int64_t first = slices_[i].begin;
      run_call(calls_[i], {call.inputs[0].as<float>() + first * s_.elements_of_x(),
                           call.inputs[1].as<float>() + first * s_.elements_of_y(), slice,
                           slice + weights_bytes_, scratchpad});
    });
    sum_slices(call.scratch, 0, weights_bytes_);
    run_call(*unpack_, {call.scratch.data(), call.outputs[0].data});
    if (!biased_) return;
    sum_slices(call.scratch, weights_bytes_, biases_bytes_);
    std::copy_n(reinterpret_cast<const float*>(call.scratch.data() + weights_bytes_), s_.y.c,
                biases);
  }

 private:
  static constexpr std::int64_t kMostSlices = 8, kSumGrain = 16 * 1024;
  // So much memory is worth more than a better share of the work among threads.
  static constexpr std::int64_t kMostSliceBytes = std::int64_t{64} << 20;

  std::size_t slice_bytes() const { return weights_bytes_ + biases_bytes_; }

  std::int64_t slices_of_images() const {
    const std::int64_t bytes =
        std::max<std::int64_t>(s_.weights.elements() * std::int64_t(sizeof(float)), 1);
    const std::int64_t most = std::clamp<std::int64_t>(kMostSliceBytes / bytes, 2, kMostSlices);
    return std::min(s_.x.n, most);
  }

  void make() {
    Desc weights = s_.any_weights();
    for (const ImageRange slice : cut(s_.x.n, slices_of_images())) {
      const ForwardDesc forward =
          forward_desc(s_, slice.size(), s_.any_weights(), biased_, std::nullopt, engine_);
      const dnnl::convolution_backward_weights::primitive_desc desc(
          {kDirect, s_.image(s_.x, slice.size()), weights, s_.biases(biased_),
           s_.image(s_.y, slice.size()), s_.strides(), s_.dilations(), s_.pads_before(),
           s_.pads_after()},
          attributes_with(std::nullopt), engine_, forward);
      if (calls_.empty()) set_layout(weights = desc.diff_weights_desc());
      slices_.push_back(slice);
      lane_bytes_ =
          std::max(lane_bytes_, round_up(desc.scratchpad_desc().get_size(), kBufferAlignment));
      calls_.emplace_back(
          dnnl::convolution_backward_weights(desc), engine_,
          std::array<OneDnnCall<5>::Operand, 5>{{{DNNL_ARG_SRC, desc.src_desc()},
                                                 {DNNL_ARG_DIFF_DST, desc.diff_dst_desc()},
                                                 {DNNL_ARG_DIFF_WEIGHTS, weights},
                                                 {DNNL_ARG_DIFF_BIAS, desc.diff_bias_desc()},
                                                 {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()}}});
    }
  }

  void set_layout(const Desc& weights) {
    weights_bytes_ = round_up(weights.get_size(), kBufferAlignment);
    biases_bytes_ = biased_ ? round_up(std::size_t(s_.y.c) * sizeof(float), kBufferAlignment) : 0;
    unpack_.emplace(reorder(weights, s_.plain_weights()));
  }

  // Into the first slice. What lies between them and the next array is summed with them.
  void sum_slices(std::span<std::byte> scratch, std::size_t offset, std::size_t bytes) {
    auto* const sum = reinterpret_cast<float*>(scratch.data() + offset);
    pool_.parallel_for(std::int64_t(bytes / sizeof(float)), kSumGrain,
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
  std::size_t weights_bytes_ = 0, biases_bytes_ = 0, lane_bytes_ = 0;
};

}  // namespace

void add_cpu_conv2d_kernels(KernelTable& table) {
  table.add("conv2d", make_float_kernel_of<Conv2dKernel>);
  table.add("conv2d_activation", make_float_kernel_of<Conv2dKernel>);
  table.add("conv2d_input_grad", make_float_kernel_of<Conv2dInputGradKernel>);
  table.add("conv2d_weights_grad", make_float_kernel_of<Conv2dWeightsGradKernel>);
}

}  // namespace paceline
