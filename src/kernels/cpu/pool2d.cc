// Pools of images whose channels lie last, in float32, image by image.
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/pool_images.h"
#include "paceline/op.h"

namespace paceline {

namespace {

PoolShape pool_shape(const Node& node, const Shape& image, const Shape& pooled) {
  return {Window2d::of(node.attributes()), image[1], image[2], pooled[1], pooled[2], image[3]};
}

/// Calls `Run` for each image with the shape, the call, and the offsets of the first elements of
/// the image and of the pooled image.
class PoolKernel : public Kernel {
 public:
  using Run = void (*)(const PoolShape&, const KernelCall&, std::int64_t, std::int64_t);
  PoolKernel(const Node& node, const Value& image, const Value& pooled, Run run, ThreadPool& pool)
      : shape_(pool_shape(node, image.shape(), pooled.shape())),
        images_(image.shape()[0]),
        run_(run),
        pool_(pool) {}

  void run(const KernelCall& call) override {
    const std::int64_t elements = shape_.h * shape_.w * shape_.channels;
    const std::int64_t pooled = shape_.pooled_h * shape_.pooled_w * shape_.channels;
    const std::int64_t grain = kImagesGrain / elements + 1;
    pool_.parallel_for(images_, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) run_(shape_, call, i * elements, i * pooled);
    });
  }

 private:
  static constexpr std::int64_t kImagesGrain = 8 * 1024;  // elements

  const PoolShape shape_;
  const std::int64_t images_;
  const Run run_;
  ThreadPool& pool_;
};

template <auto max_pool>
void run_max(const PoolShape& shape, const KernelCall& call, std::int64_t image,
             std::int64_t pooled) {
  max_pool(shape, call.inputs[0].as<float>() + image, call.outputs[0].as<float>() + pooled,
           call.outputs[1].as<std::uint8_t>() + pooled);
}
void run_max_grad(const PoolShape& shape, const KernelCall& call, std::int64_t image,
                  std::int64_t pooled) {
  max_pool_image_grad(shape, call.inputs[0].as<float>() + pooled,
                      call.inputs[1].as<std::uint8_t>() + pooled,
                      call.outputs[0].as<float>() + image);
}
void run_avg(const PoolShape& shape, const KernelCall& call, std::int64_t image,
             std::int64_t pooled) {
  avg_pool_image(shape, call.inputs[0].as<float>() + image, call.outputs[0].as<float>() + pooled);
}
void run_avg_grad(const PoolShape& shape, const KernelCall& call, std::int64_t image,
                  std::int64_t pooled) {
  avg_pool_image_grad(shape, call.inputs[0].as<float>() + pooled,
                      call.outputs[0].as<float>() + image);
}

/// Returns false if naive kernels must compute the pool: the channels of its images do not lie
/// last, or they are not float32.
bool is_fast_pool(const Node& node) {
  return channels_last(node.attributes()) && node.outputs()[0].dtype == DType::kFloat32;
}

template <PoolKernel::Run run>
std::unique_ptr<Kernel> make_pool(const Node& node, ThreadPool& pool) {
  if (!is_fast_pool(node)) return nullptr;
  return std::make_unique<PoolKernel>(node, node.input(0), node.output(0), run, pool);
}
template <PoolKernel::Run run>
std::unique_ptr<Kernel> make_pool_grad(const Node& node, ThreadPool& pool) {
  if (!is_fast_pool(node)) return nullptr;
  return std::make_unique<PoolKernel>(node, node.output(0), node.input(0), run, pool);
}

}  // namespace

void add_cpu_pool2d_kernels(KernelTable& table) {
  table.add("max_pool2d", make_pool<run_max<max_pool_image>>);
  table.add("relu_max_pool2d", make_pool<run_max<relu_max_pool_image>>);
  table.add("max_pool2d_grad", make_pool_grad<run_max_grad>);
  table.add("avg_pool2d", make_pool<run_avg>);
  table.add("avg_pool2d_grad", make_pool_grad<run_avg_grad>);
}

}  // namespace paceline
