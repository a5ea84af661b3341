#include "kernels/cuda/cuda_work.h"

#include <algorithm>
#include <array>

namespace paceline {
namespace cuda {

const char* const kPrelude = R"(typedef long long i64;
typedef unsigned long long u64;
// Every index below n, each in one thread.
#define EACH(i, n)                                                       \
  for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < (n); \
       i += (i64)gridDim.x * blockDim.x)

// NaN where one of them is NaN.
__device__ inline float larger(float a, float b) { return a > b || a != a ? a : b; }

// The sum over the 128 threads of a block, in all of them.
template <typename T>
__device__ T block_sum(T x) {
  __shared__ T parts[4];
  for (int by = 16; by > 0; by /= 2) x += __shfl_xor_sync(~0u, x, by);
  __syncthreads();
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
  __syncthreads();
  return parts[0] + parts[1] + parts[2] + parts[3];
}
__device__ inline float block_max(float x) {
  __shared__ float parts[4];
  for (int by = 16; by > 0; by /= 2) x = larger(x, __shfl_xor_sync(~0u, x, by));
  __syncthreads();
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
  __syncthreads();
  return larger(larger(parts[0], parts[1]), larger(parts[2], parts[3]));
}
// Whether an index is below its limit; the first one that is not is kept.
__device__ inline bool in_range(int index, i64 at, i64 limit, u64* fault) {
  if (index >= 0 && index < limit) return true;
  atomicMin(fault, (u64)at << 32 | (unsigned)index);
  return false;
}
)";

const char* const kImageSource = R"(
struct Image {
  i64 n, c, h, w, of_n, of_c, of_w;
  __device__ i64 elements() const { return n * c * h * w; }
  __device__ i64 of_channel() const { return n * h * w; }
  __device__ bool has(i64 row, i64 column) const {
    return row >= 0 && row < h && column >= 0 && column < w;
  }
  __device__ i64 at(i64 image, i64 channel, i64 row, i64 column) const {
    return image * of_n + channel * of_c + (row * w + column) * of_w;
  }
  // Element e of a channel.
  __device__ i64 at(i64 channel, i64 e) const {
    return e / (h * w) * of_n + channel * of_c + e % (h * w) * of_w;
  }
};
)";

// The `width` neighbouring threads of a group take one column each, and the groups of a block take
// different rows. A block sums one part of the rows.
const char* const kSumColumns = R"(
__device__ inline double sum_of_lanes(double x, i64 width) {
  __shared__ double all[128];
  __syncthreads();
  all[threadIdx.x] = x;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half >= width; half /= 2) {
    if (threadIdx.x < half) all[threadIdx.x] += all[threadIdx.x + half];
    __syncthreads();
  }
  return all[threadIdx.x];
}
extern "C" __global__ void column_parts(double* sums, const float* from, i64 rows, i64 columns,
                                        i64 width, i64 parts) {
  const i64 tiles = (columns + width - 1) / width, high = blockDim.x / width;
  for (i64 b = blockIdx.x; b < tiles * parts; b += gridDim.x) {
    const i64 column = b % tiles * width + threadIdx.x % width, part = b / tiles;
    const i64 end = rows * (part + 1) / parts;
    double sum = 0;
    if (column < columns) {
      for (i64 r = rows * part / parts + threadIdx.x / width; r < end; r += high) {
        sum += from[r * columns + column];
      }
    }
    sum = sum_of_lanes(sum, width);
    if (threadIdx.x < width && column < columns) sums[part * columns + column] = sum;
  }
}
// A block adds the parts of a sum.
extern "C" __global__ void sum_parts(float* to, const double* sums, i64 n, i64 parts,
                                     double factor) {
  for (i64 j = blockIdx.x; j < n; j += gridDim.x) {
    double sum = 0;
    for (i64 part = threadIdx.x; part < parts; part += blockDim.x) sum += sums[part * n + j];
    sum = block_sum(sum);
    if (threadIdx.x == 0) to[j] = (float)(sum * factor);
  }
}
)";

void sum_columns(CudaWork& work, const CudaArgument& to, const CudaArgument& from,
                 std::int64_t rows, std::int64_t columns, double factor) {
  using A = CudaArgument;
  const std::int64_t width = lanes_for(columns), tiles = (columns + width - 1) / width;
  const std::int64_t parts = parts_of(rows * width, tiles);
  const std::size_t sums = work.add_scratch(std::size_t(columns * parts) * sizeof(double));
  work.launches.push_back({"column_parts",
                           tiles * parts,
                           {A::scratch(sums), from, A::integer(rows), A::integer(columns),
                            A::integer(width), A::integer(parts)}});
  work.launches.push_back(
      {"sum_parts",
       columns,
       {to, A::scratch(sums), A::integer(columns), A::integer(parts), A::of(factor)}});
}

Image image_of(const Shape& shape, const Attributes& attributes) {
  const bool last = channels_last(attributes);
  const ImageShape image = ImageShape::of(shape, last);
  const auto strides = image.strides(last);
  return {image.n, image.c, image.h, image.w, strides[0], strides[1], strides[3]};
}

namespace {

std::optional<CudaWork> own_op_work(const Node& node) {
  if (!node.op().cuda_source) return {};
  CudaWork work{node.op().cuda_source(node), {}, 0, {}};
  if (work.source.empty()) return {};
  const std::int64_t n = node.outputs()[0].shape.elements();
  CudaLaunch launch{"kernel", blocks_for(n), {}};
  for (std::size_t k = 0; k < node.outputs().size(); ++k) {
    launch.arguments.push_back(CudaArgument::output(k));
  }
  for (std::size_t k = 0; k < node.inputs().size(); ++k) {
    launch.arguments.push_back(CudaArgument::input(k));
  }
  launch.arguments.push_back(CudaArgument::integer(n));
  work.launches = {std::move(launch)};
  return work;
}

bool has_float64(const Node& node) {
  const auto wide = [](const ValueType& type) { return type.dtype == DType::kFloat64; };
  return std::ranges::any_of(node.outputs(), wide) ||
         std::ranges::any_of(node.inputs(), wide, &Value::type);
}

}  // namespace
}  // namespace cuda

std::optional<CudaWork> cuda_work(const Node& node) {
  constexpr std::array kOfAnyType = {cuda::own_op_work, cuda::layout_work, cuda::cast_work};
  constexpr std::array kOfFloat32 = {cuda::reduce_work,     cuda::row_work,    cuda::loss_work,
                                     cuda::table_work,      cuda::random_work, cuda::image_work,
                                     cuda::batch_norm_work, cuda::product_work};
  const auto first_of = [&](const auto& families) -> std::optional<CudaWork> {
    for (const auto family : families) {
      if (std::optional<CudaWork> work = family(node)) {
        work->source = cuda::kPrelude + work->source;
        return work;
      }
    }
    return {};
  };
  if (auto work = first_of(kOfAnyType)) return work;
  if (!cuda::has_float64(node)) return first_of(kOfFloat32);
  return {};
}

}  // namespace paceline
