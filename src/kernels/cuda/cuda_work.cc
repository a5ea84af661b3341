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

const char* const kRoundedSource = R"(
__device__ inline float rounded(float x) {
  const unsigned word = __float_as_uint(x);
  return x != x ? x : __uint_as_float((word + 0x7fff + ((word >> 16) & 1)) & 0xffff0000u);
}
)";

// 32 columns and 4 rows at once.
const char* const kSumColumns = R"(
extern "C" __global__ void sum_columns(float* to, const float* from, i64 rows, i64 columns) {
  __shared__ double sums[4][32];
  const int x = threadIdx.x % 32, y = threadIdx.x / 32;
  for (i64 first = (i64)blockIdx.x * 32; first < columns; first += (i64)gridDim.x * 32) {
    double sum = 0;
    if (first + x < columns) {
      for (i64 r = y; r < rows; r += 4) sum += from[r * columns + first + x];
    }
    __syncthreads();
    sums[y][x] = sum;
    __syncthreads();
    if (y == 0 && first + x < columns) {
      to[first + x] = (float)(sums[0][x] + sums[1][x] + sums[2][x] + sums[3][x]);
    }
  }
}
)";

CudaLaunch sum_columns(CudaArgument to, CudaArgument from, std::int64_t rows,
                       std::int64_t columns) {
  return {"sum_columns",
          (columns + 31) / 32,
          {std::move(to), std::move(from), CudaArgument::integer(rows),
           CudaArgument::integer(columns)}};
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
