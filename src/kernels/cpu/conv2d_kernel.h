// Parts that the kernels of a convolution's three passes share. For .cc files only.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <dnnl.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/allocation_scope.h"
#include "base/buffer.h"
#include "kernels/cpu/claimed_tiles.h"
#include "kernels/cpu/one_thread.h"
#include "kernels/cpu/operand_cast.h"
#include "ops/image.h"
#include "paceline/graph.h"
#include "paceline/op.h"

namespace paceline {

/// A oneDNN primitive with its own memory objects, made once and run with new addresses in each
/// call.
template <std::size_t N>
class OneDnnCall {
 public:
  using Operand = std::pair<int, dnnl::memory::desc>;  // DNNL_ARG_…

  OneDnnCall(dnnl::primitive primitive, const dnnl::engine& engine,
             const std::array<Operand, N>& operands)
      : primitive_(std::move(primitive)), stream_(engine) {
    for (std::size_t i = 0; i < N; ++i) {
      memories_[i] = dnnl::memory(operands[i].second, engine, DNNL_MEMORY_NONE);
      arguments_[i] = {operands[i].first, memories_[i].get()};
    }
  }

  /// Runs on the calling thread alone. Calls oneDNN's C interface, since the C++ interface would
  /// build a map and a vector in each call. oneDNN takes inputs, too, as writable memory.
  dnnl_status_t run(const void* const (&addresses)[N]) {
    const OneThread guard;
    const ForeignAllocations scope;
    for (std::size_t i = 0; i < N; ++i) {
      dnnl_memory_set_data_handle(memories_[i].get(), const_cast<void*>(addresses[i]));
    }
    return dnnl_primitive_execute(primitive_.get(), stream_.get(), N, arguments_.data());
  }

 private:
  dnnl::primitive primitive_;
  dnnl::stream stream_;
  std::array<dnnl::memory, N> memories_;
  std::array<dnnl_exec_arg_t, N> arguments_;
};

/// Images [begin, end).
struct ImageRange {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};
/// Cuts the images into `parts` ranges of about equal size.
std::vector<ImageRange> cut_images(std::int64_t images, std::int64_t parts);

/// The sizes of a convolution, from the node of any of its passes, and in oneDNN's form.
struct ConvShape {
  using Desc = dnnl::memory::desc;
  using Dims = dnnl::memory::dims;
  using Type = dnnl::memory::data_type;

  ConvShape(const Node& node, const Value& x, const Value& y, const Shape& weights);

  /// Describes a batch of `images` images.
  Desc image(const ImageShape& of, std::int64_t images, Type type) const;
  Dims weight_dims() const;
  Desc plain_weights(Type type) const;
  Desc any_weights(Type type) const { return {weight_dims(), type, dnnl::memory::format_tag::any}; }
  Desc biases(bool biased) const;
  Dims strides() const { return {window.strides[0], window.strides[1]}; }
  Dims dilations() const { return {window.dilations[0] - 1, window.dilations[1] - 1}; }
  Dims pads_before() const { return {window.pads[0], window.pads[1]}; }
  Dims pads_after() const { return {window.pads[2], window.pads[3]}; }

  std::int64_t elements_of_x() const { return x.c * x.h * x.w; }
  std::int64_t elements_of_y() const { return y.c * y.h * y.w; }
  double flops_of_image() const {
    return 2.0 * double(elements_of_y()) * double(weights[1] * weights[2] * weights[3]);
  }
  [[noreturn]] void fail(const std::string& what) const;

  std::string name;
  bool last;
  ImageShape x, y;
  Shape weights;
  std::int64_t groups;
  Window2d window;
  bool rounds;    // rounds the operands of products to bfloat16
  Type operands;  // the type in which operands are multiplied
};

/// The base class of all passes: an engine, and helpers that make primitives and prepare operands.
class ConvKernel : public Kernel {
 public:
  ConvKernel(ConvShape shape, ThreadPool& pool)
      : s_(std::move(shape)), pool_(pool), cast_(s_.rounds, pool) {}

 protected:
  using Desc = ConvShape::Desc;
  using Reorder = OneDnnCall<2>;
  static constexpr auto kFloat = ConvShape::Type::f32;

  /// Calls `make`, which makes primitives, and reports errors of oneDNN with the node's name.
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
    if (status != dnnl_success) s_.fail("status " + std::to_string(int(status)));
  }
  Reorder reorder(const Desc& from, const Desc& to) const;

  /// Describes a forward pass; descriptions of gradients need it too.
  dnnl::convolution_forward::primitive_desc forward_desc(std::int64_t images, const Desc& weights,
                                                         bool biased,
                                                         std::optional<float> slope) const;

  /// Returns `count` images in the type of operands: `images` itself, or a rounded copy of it in
  /// `space`, which has at least operand_bytes() bytes. Rounds on the calling thread.
  const void* operand(const ImageShape& of, const float* images, std::int64_t count,
                      std::byte* space) const;
  std::size_t operand_bytes(const ImageShape& of, std::int64_t count) const {
    return cast_.bytes(count * of.c * of.h * of.w);
  }
  /// Brings images into the cache in memory order. oneDNN itself goes through 16 channels of all
  /// pixels and then through the next 16, and memory serves scattered lines more slowly.
  void fetch(const ImageShape& of, const float* images, std::int64_t count) const;

  const ConvShape s_;
  ThreadPool& pool_;
  const OperandCast cast_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
};

/// Returns a primitive's attributes. If `slope` is given, the primitive applies relu (slope 0) or
/// leaky relu to its output.
dnnl::primitive_attr convolution_attributes(std::optional<float> slope);

}  // namespace paceline
