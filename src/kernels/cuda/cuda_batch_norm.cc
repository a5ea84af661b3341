// Batch norm of images: a block passes over a channel.
#include "kernels/cuda/cuda_work.h"
#include "paceline/op.h"

namespace paceline::cuda {
namespace {

const char* const kBatchNormSource = R"(
// z = gain * (x - mean) * scale + offset
struct Normalizer {
  double mean, scale, gain, offset;
  __device__ double unit(double x) const { return (x - mean) * scale; }
  __device__ double of(double x) const { return gain * unit(x) + offset; }
};
__device__ inline void normalize(float* y, const float* x, const Image& xs, i64 c,
                                 const Normalizer& z, double slope) {
  for (i64 e = threadIdx.x; e < xs.of_channel(); e += blockDim.x) {
    const double value = z.of(x[xs.at(c, e)]);
    y[xs.at(c, e)] = (float)(value < 0 ? slope * value : value);
  }
}
extern "C" __global__ void batch_norm(float* y, float* means, float* variances, const float* x,
                                      const float* gains, const float* offsets, Image xs,
                                      double epsilon, double slope) {
  for (i64 c = blockIdx.x; c < xs.c; c += gridDim.x) {
    double sum = 0, squares = 0;
    for (i64 e = threadIdx.x; e < xs.of_channel(); e += blockDim.x) sum += x[xs.at(c, e)];
    const double mean = block_sum(sum) / xs.of_channel();
    for (i64 e = threadIdx.x; e < xs.of_channel(); e += blockDim.x) {
      squares += (x[xs.at(c, e)] - mean) * (x[xs.at(c, e)] - mean);
    }
    const double variance = block_sum(squares) / xs.of_channel();
    normalize(y, x, xs, c, {mean, 1 / sqrt(variance + epsilon), gains[c], offsets[c]}, slope);
    if (threadIdx.x == 0) {
      means[c] = (float)mean;
      variances[c] = (float)variance;
    }
  }
}
extern "C" __global__ void batch_norm_inference(float* y, const float* x, const float* gains,
                                                const float* offsets, const float* means,
                                                const float* variances, Image xs, double epsilon,
                                                double slope) {
  for (i64 c = blockIdx.x; c < xs.c; c += gridDim.x) {
    normalize(y, x, xs, c, {means[c], 1 / sqrt(variances[c] + epsilon), gains[c], offsets[c]},
              slope);
  }
}
extern "C" __global__ void batch_norm_grad(float* dx, float* d_gains, float* d_offsets,
                                           const float* dy, const float* x, const float* gains,
                                           const float* means, const float* variances,
                                           const float* offsets, Image xs, double epsilon,
                                           double slope, i64 of_batch) {
  for (i64 c = blockIdx.x; c < xs.c; c += gridDim.x) {
    const Normalizer z = {means[c], 1 / sqrt(variances[c] + epsilon), gains[c],
                          offsets ? offsets[c] : 0.0f};
    double sum = 0, products = 0;
    for (i64 e = threadIdx.x; e < xs.of_channel(); e += blockDim.x) {
      const double value = z.of(x[xs.at(c, e)]), gradient = dy[xs.at(c, e)];
      const double dz = value < 0 || (value == 0 && slope == 0) ? slope * gradient : gradient;
      sum += dz;
      products += dz * z.unit(x[xs.at(c, e)]);
    }
    sum = block_sum(sum);
    products = block_sum(products);
    for (i64 e = threadIdx.x; e < xs.of_channel(); e += blockDim.x) {
      const double value = z.of(x[xs.at(c, e)]), gradient = dy[xs.at(c, e)];
      const double dz = value < 0 || (value == 0 && slope == 0) ? slope * gradient : gradient;
      const double through =
          of_batch ? (sum + z.unit(x[xs.at(c, e)]) * products) / xs.of_channel() : 0.0;
      dx[xs.at(c, e)] = (float)(z.gain * z.scale * (dz - through));
    }
    if (threadIdx.x == 0) {
      d_gains[c] = (float)products;
      d_offsets[c] = (float)sum;
    }
  }
}
)";

using A = CudaArgument;

}  // namespace

std::optional<CudaWork> batch_norm_work(const Node& node) {
  const std::string& op = node.op().name;
  if (!op.starts_with("batch_norm")) return {};
  const Attributes& attributes = node.attributes();
  const Image xs = image_of(node.outputs()[0].shape, attributes);
  const double slope = attributes.has("slope") ? attributes.get<double>("slope") : 1;
  const bool grad = op.ends_with("_grad"), inference = op.starts_with("batch_norm_inference");
  std::vector<A> arguments = {A::output(0)};
  if (grad || !inference) {
    arguments.push_back(A::output(1));
    arguments.push_back(A::output(2));
  }
  for (std::size_t k = 0; k < node.inputs().size(); ++k) arguments.push_back(A::input(k));
  // Offsets are an input only where an activation follows.
  if (grad && node.inputs().size() == 5) arguments.push_back(A::null());
  arguments.push_back(A::of(xs));
  arguments.push_back(A::of(attributes.get<double>("epsilon")));
  arguments.push_back(A::of(slope));
  if (grad) arguments.push_back(A::integer(!inference));
  const char* const function = grad        ? "batch_norm_grad"
                               : inference ? "batch_norm_inference"
                                           : "batch_norm";
  return CudaWork{std::string(kImageSource) + kBatchNormSource,
                  {{function, xs.c, std::move(arguments)}},
                  0,
                  {},
                  !inference};
}

}  // namespace paceline::cuda
