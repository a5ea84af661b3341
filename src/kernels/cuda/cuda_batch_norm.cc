// Batch norm of images. Each block of threads sums one part of some channels. After that, each
// thread computes elements one by one.
#include "kernels/cuda/cuda_work.h"
#include "paceline/op.h"

namespace paceline::cuda {
namespace {

const char* const kBatchNormSource = R"(
// The elements of some channels in some of their places, which a block passes over: `width` threads
// beside each other take channels, the others places.
struct Parts {
  i64 width, parts;
};
__device__ inline i64 channel_of(const Image& xs, i64 e) {
  return xs.of_c == 1 && xs.of_w == xs.c ? e % xs.c : e / (xs.h * xs.w) % xs.c;
}
// Calls visit(e) for the places of the channel in this part, and returns whether the thread has the
// sums that sum_of_lanes then gives.
template <typename F>
__device__ inline void each_place(const Image& xs, const Parts& p, i64 part, F visit) {
  const i64 end = xs.of_channel() * (part + 1) / p.parts, high = blockDim.x / p.width;
  for (i64 e = xs.of_channel() * part / p.parts + threadIdx.x / p.width; e < end; e += high) {
    visit(e);
  }
}
__device__ inline void keep(double* sums, const Image& xs, const Parts& p, i64 part, i64 c,
                            double first, double second) {
  first = sum_of_lanes(first, p.width);
  second = sum_of_lanes(second, p.width);
  if (threadIdx.x >= p.width || c >= xs.c) return;
  sums[part * xs.c + c] = first;
  sums[(p.parts + part) * xs.c + c] = second;
}
// The sum of what the parts have of a channel, and of so many more behind them.
__device__ inline double sum_of_parts(const double* sums, i64 channels, i64 c, i64 parts) {
  double sum = 0;
  for (i64 part = threadIdx.x; part < parts; part += blockDim.x) sum += sums[part * channels + c];
  return block_sum(sum);
}

// Sums of the distances to the channel's first element, and of their squares: nothing is lost where
// a mean is large.
extern "C" __global__ void batch_norm_parts(double* sums, const float* x, Image xs, Parts p) {
  const i64 tiles = (xs.c + p.width - 1) / p.width;
  for (i64 b = blockIdx.x; b < tiles * p.parts; b += gridDim.x) {
    const i64 c = b % tiles * p.width + threadIdx.x % p.width, part = b / tiles;
    double sum = 0, squares = 0;
    if (c < xs.c && xs.n > 0) {
      const double first = x[xs.at(c, 0)];
      each_place(xs, p, part, [&](i64 e) {
        const double distance = x[xs.at(c, e)] - first;
        sum += distance;
        squares += distance * distance;
      });
    }
    keep(sums, xs, p, part, c, sum, squares);
  }
}
// `exact` gets the mean of each channel, then the variances.
extern "C" __global__ void batch_norm_statistics(double* exact, float* means, float* variances,
                                                 const double* sums, const float* x, Image xs,
                                                 Parts p) {
  for (i64 c = blockIdx.x; c < xs.c; c += gridDim.x) {
    const double mean = sum_of_parts(sums, xs.c, c, p.parts) / xs.of_channel();
    const double squares =
        sum_of_parts(sums + p.parts * xs.c, xs.c, c, p.parts) / xs.of_channel();
    if (threadIdx.x != 0) continue;
    exact[c] = xs.n > 0 ? x[xs.at(c, 0)] + mean : mean;
    exact[xs.c + c] = fmax(squares - mean * mean, 0.0);
    means[c] = (float)exact[c];
    variances[c] = (float)exact[xs.c + c];
  }
}
// z = gain * (x - mean) * scale + offset
struct Normalizer {
  double mean, scale, gain, offset;
  __device__ double unit(double x) const { return (x - mean) * scale; }
  __device__ double of(double x) const { return gain * unit(x) + offset; }
};
// Means and variances are doubles, or floats in an inference.
template <typename T>
__device__ inline void normalize(float* y, const float* x, const float* gains,
                                 const float* offsets, const T* means, const T* variances,
                                 const Image& xs, double epsilon, double slope) {
  EACH(e, xs.elements()) {
    const i64 c = channel_of(xs, e);
    const Normalizer z = {means[c], 1 / sqrt(variances[c] + epsilon), gains[c], offsets[c]};
    const double value = z.of(x[e]);
    y[e] = (float)(value < 0 ? slope * value : value);
  }
}
extern "C" __global__ void batch_norm(float* y, const float* x, const float* gains,
                                      const float* offsets, const double* means,
                                      const double* variances, Image xs, double epsilon,
                                      double slope) {
  normalize(y, x, gains, offsets, means, variances, xs, epsilon, slope);
}
extern "C" __global__ void batch_norm_inference(float* y, const float* x, const float* gains,
                                                const float* offsets, const float* means,
                                                const float* variances, Image xs, double epsilon,
                                                double slope) {
  normalize(y, x, gains, offsets, means, variances, xs, epsilon, slope);
}
__device__ inline double through(const Normalizer& z, double x, double gradient, double slope) {
  const double value = z.of(x);
  return value < 0 || (value == 0 && slope == 0) ? slope * gradient : gradient;
}
extern "C" __global__ void batch_norm_grad_parts(double* sums, const float* dy, const float* x,
                                                 const float* gains, const float* means,
                                                 const float* variances, const float* offsets,
                                                 Image xs, double epsilon, double slope, Parts p) {
  const i64 tiles = (xs.c + p.width - 1) / p.width;
  for (i64 b = blockIdx.x; b < tiles * p.parts; b += gridDim.x) {
    const i64 c = b % tiles * p.width + threadIdx.x % p.width, part = b / tiles;
    double sum = 0, products = 0;
    if (c < xs.c) {
      const Normalizer z = {means[c], 1 / sqrt(variances[c] + epsilon), gains[c],
                            offsets ? offsets[c] : 0.0f};
      each_place(xs, p, part, [&](i64 e) {
        const double element = x[xs.at(c, e)];
        const double dz = through(z, element, dy[xs.at(c, e)], slope);
        sum += dz;
        products += dz * z.unit(element);
      });
    }
    keep(sums, xs, p, part, c, sum, products);
  }
}
// `totals` gets both sums of each channel.
extern "C" __global__ void batch_norm_grad_sums(double* totals, float* d_gains, float* d_offsets,
                                                const double* sums, Image xs, Parts p) {
  for (i64 c = blockIdx.x; c < xs.c; c += gridDim.x) {
    const double sum = sum_of_parts(sums, xs.c, c, p.parts);
    const double products = sum_of_parts(sums + p.parts * xs.c, xs.c, c, p.parts);
    if (threadIdx.x != 0) continue;
    totals[c] = sum;
    totals[xs.c + c] = products;
    d_offsets[c] = (float)sum;
    d_gains[c] = (float)products;
  }
}
extern "C" __global__ void batch_norm_grad(float* dx, const double* totals, const float* dy,
                                           const float* x, const float* gains, const float* means,
                                           const float* variances, const float* offsets, Image xs,
                                           double epsilon, double slope, i64 of_batch) {
  EACH(e, xs.elements()) {
    const i64 c = channel_of(xs, e);
    const Normalizer z = {means[c], 1 / sqrt(variances[c] + epsilon), gains[c],
                          offsets ? offsets[c] : 0.0f};
    const double back =
        of_batch ? (totals[c] + z.unit(x[e]) * totals[xs.c + c]) / xs.of_channel() : 0.0;
    dx[e] = (float)(z.gain * z.scale * (through(z, x[e], dy[e], slope) - back));
  }
}
)";

using A = CudaArgument;

/// Matches the struct in the kernel source.
struct Parts {
  explicit Parts(const Image& xs)
      : width(xs.of_c == 1 ? lanes_for(xs.c) : 1),
        parts(parts_of(xs.n * xs.h * xs.w * width, tiles(xs))) {}

  std::int64_t tiles(const Image& xs) const { return (xs.c + width - 1) / width; }

  std::int64_t width, parts;
};

std::string batch_norm_source() {
  return std::string(kImageSource) + kSumColumns + kBatchNormSource;
}

/// Scratch memory: two sums in double for each part of each channel, and then two for each channel.
struct Sums {
  Sums(CudaWork& work, const Image& xs, const Parts& p)
      : parts(A::scratch(work.add_scratch(std::size_t(2 * p.parts * xs.c) * sizeof(double)))),
        first_at(work.add_scratch(std::size_t(2 * xs.c) * sizeof(double))),
        first(A::scratch(first_at)),
        second(A::scratch(first_at + std::size_t(xs.c) * sizeof(double))) {}

  A parts;
  std::size_t first_at;
  A first, second;
};

CudaWork training(const Image& xs, const A& epsilon, const A& slope) {
  const Parts p(xs);
  CudaWork work{batch_norm_source(), {}, 0, {}};
  const Sums sums(work, xs, p);
  work.launches = {
      {"batch_norm_parts", p.tiles(xs) * p.parts, {sums.parts, A::input(0), A::of(xs), A::of(p)}},
      {"batch_norm_statistics",
       xs.c,
       {sums.first, A::output(1), A::output(2), sums.parts, A::input(0), A::of(xs), A::of(p)}},
      {"batch_norm",
       blocks_for(xs.n * xs.c * xs.h * xs.w),
       {A::output(0), A::input(0), A::input(1), A::input(2), sums.first, sums.second, A::of(xs),
        epsilon, slope}}};
  return work;
}

CudaWork gradient(const Image& xs, std::vector<A> inputs, const A& epsilon, const A& slope,
                  bool of_batch) {
  const Parts p(xs);
  CudaWork work{batch_norm_source(), {}, 0, {}};
  const Sums sums(work, xs, p);
  inputs.insert(inputs.end(), {A::of(xs), epsilon, slope});
  const auto arguments = [&](std::vector<A> first, const A& last) {
    first.insert(first.end(), inputs.begin(), inputs.end());
    first.push_back(last);
    return first;
  };
  work.launches = {
      {"batch_norm_grad_parts", p.tiles(xs) * p.parts, arguments({sums.parts}, A::of(p))},
      {"batch_norm_grad_sums",
       xs.c,
       {sums.first, A::output(1), A::output(2), sums.parts, A::of(xs), A::of(p)}},
      {"batch_norm_grad", blocks_for(xs.n * xs.c * xs.h * xs.w),
       arguments({A::output(0), sums.first}, A::integer(of_batch))}};
  return work;
}

}  // namespace

std::optional<CudaWork> batch_norm_work(const Node& node) {
  const std::string& op = node.op().name;
  if (!op.starts_with("batch_norm")) return {};
  const Attributes& attributes = node.attributes();
  const Image xs = image_of(node.outputs()[0].shape, attributes);
  const A epsilon = A::of(attributes.get<double>("epsilon"));
  const A slope = A::of(attributes.has("slope") ? attributes.get<double>("slope") : 1.0);
  const bool inference = op.starts_with("batch_norm_inference");
  std::vector<A> inputs;
  for (std::size_t k = 0; k < node.inputs().size(); ++k) inputs.push_back(A::input(k));
  CudaWork work;
  if (op.ends_with("_grad")) {
    // Offsets are an input only if an activation follows.
    if (inputs.size() == 5) inputs.push_back(A::null());
    work = gradient(xs, std::move(inputs), epsilon, slope, !inference);
  } else if (inference) {
    inputs.insert(inputs.begin(), A::output(0));
    inputs.insert(inputs.end(), {A::of(xs), epsilon, slope});
    work = {batch_norm_source(),
            {{"batch_norm_inference", blocks_for(xs.n * xs.c * xs.h * xs.w), std::move(inputs)}},
            0,
            {}};
  } else {
    work = training(xs, epsilon, slope);
  }
  work.exchanges = !inference;
  return work;
}

}  // namespace paceline::cuda
