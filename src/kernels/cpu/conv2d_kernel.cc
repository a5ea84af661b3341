#include "kernels/cpu/conv2d_kernel.h"

#include <fmt/format.h>

#include "kernels/cpu/instruction_set.h"
#include "kernels/rounded_products.h"
#include "paceline/error.h"

namespace paceline {

namespace {

using Tag = dnnl::memory::format_tag;

constexpr std::int64_t kLineFloats = 16;

ConvShape::Type operand_type(bool rounds) {
  const bool bfloat16 = rounds && product_dtype(DType::kBFloat16) == DType::kBFloat16;
  return bfloat16 ? ConvShape::Type::bf16 : ConvShape::Type::f32;
}

}  // namespace

std::vector<ImageRange> cut_images(std::int64_t images, std::int64_t parts) {
  std::vector<ImageRange> ranges;
  for (std::int64_t i = 0; i < parts; ++i) {
    ranges.push_back({images * i / parts, images * (i + 1) / parts});
  }
  return ranges;
}

ConvShape::ConvShape(const Node& node, const Value& x, const Value& y, const Shape& weights)
    : name(node.op().name),
      last(channels_last(node.attributes())),
      x(ImageShape::of(x.shape(), last)),
      y(ImageShape::of(y.shape(), last)),
      weights(weights),
      groups(node.attributes().get<std::int64_t>("groups")),
      window(Window2d::of(node.attributes())),
      rounds(rounds_products(node)),
      operands(operand_type(rounds)) {}

ConvShape::Desc ConvShape::image(const ImageShape& of, std::int64_t images, Type type) const {
  return {{images, of.c, of.h, of.w}, type, last ? Tag::nhwc : Tag::nchw};
}

ConvShape::Dims ConvShape::weight_dims() const {
  if (groups == 1) return {weights[0], weights[1], weights[2], weights[3]};
  return {groups, weights[0] / groups, weights[1], weights[2], weights[3]};
}

ConvShape::Desc ConvShape::plain_weights(Type type) const {
  return {weight_dims(), type, groups == 1 ? Tag::oihw : Tag::goihw};
}

ConvShape::Desc ConvShape::biases(bool biased) const {
  return biased ? Desc({y.c}, Type::f32, Tag::x) : Desc();
}

void ConvShape::fail(const std::string& what) const {
  throw Error(ErrorCode::kInternal, fmt::format("[{}] oneDNN on {} with weights {}: {}", name,
                                                x.shape(last).str(), weights.str(), what));
}

ConvKernel::Reorder ConvKernel::reorder(const Desc& from, const Desc& to) const {
  return {dnnl::reorder({engine_, from, engine_, to}),
          engine_,
          {{{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}}};
}

dnnl::convolution_forward::primitive_desc ConvKernel::forward_desc(
    std::int64_t images, const Desc& weights, bool biased, std::optional<float> slope) const {
  const dnnl::convolution_forward::desc desc(
      dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct,
      s_.image(s_.x, images, s_.operands), weights, s_.biases(biased),
      s_.image(s_.y, images, kFloat), s_.strides(), s_.dilations(), s_.pads_before(),
      s_.pads_after());
  return {desc, convolution_attributes(slope), engine_};
}

const void* ConvKernel::operand(const ImageShape& of, const float* images, std::int64_t count,
                                std::byte* space) const {
  if (!s_.rounds) return images;
  cast_.put(images, count * of.c * of.h * of.w, space, 0);
  return space;
}

void ConvKernel::fetch(const ImageShape& of, const float* images, std::int64_t count) const {
  if (!s_.last || of.c <= kLineFloats) return;
  const volatile float* const line = images;
  for (std::int64_t i = 0; i < count * of.c * of.h * of.w; i += kLineFloats) (void)line[i];
}

dnnl::primitive_attr convolution_attributes(std::optional<float> slope) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (!slope) return attributes;
  dnnl::post_ops activation;
  activation.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, *slope, 0);
  attributes.set_post_ops(activation);
  return attributes;
}

}  // namespace paceline
