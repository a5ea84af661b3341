// Sums, means and maxima over any axes, and the norm of several tensors. One block computes one
// output; its threads pass over the elements that this output reduces. Sums over the first axes, or
// over all, are computed in parts.
#include <array>
#include <utility>

#include "kernels/cuda/cuda_work.h"
#include "ops/reduced_shape.h"
#include "paceline/op.h"

namespace paceline::cuda {
namespace {

const char* const kReduceSource = R"(
// Dimensions, with the distance of one index to the next in the input.
struct Axes {
  i64 rank, size[8], step[8];
  __device__ i64 place(i64 index) const {
    i64 place = 0;
    for (int d = (int)rank - 1; d >= 0; --d) {
      place += index % size[d] * step[d];
      index /= size[d];
    }
    return place;
  }
};
extern "C" __global__ void reduce_sum(float* y, const float* x, i64 outputs, i64 n, Axes kept,
                                      Axes reduced, double factor) {
  for (i64 j = blockIdx.x; j < outputs; j += gridDim.x) {
    const i64 from = kept.place(j);
    double sum = 0;
    for (i64 r = threadIdx.x; r < n; r += blockDim.x) sum += x[from + reduced.place(r)];
    sum = block_sum(sum);
    if (threadIdx.x == 0) y[j] = (float)(sum * factor);
  }
}
extern "C" __global__ void reduce_max(float* y, const float* x, i64 outputs, i64 n, Axes kept,
                                      Axes reduced) {
  for (i64 j = blockIdx.x; j < outputs; j += gridDim.x) {
    const i64 from = kept.place(j);
    float most = -1.0f / 0.0f;
    for (i64 r = threadIdx.x; r < n; r += blockDim.x) most = larger(most, x[from + reduced.place(r)]);
    most = block_max(most);
    if (threadIdx.x == 0) y[j] = most;
  }
}
// Equals share the gradient evenly.
extern "C" __global__ void reduce_max_grad(float* dx, const float* dy, const float* x,
                                           const float* y, i64 outputs, i64 n, Axes kept,
                                           Axes reduced) {
  for (i64 j = blockIdx.x; j < outputs; j += gridDim.x) {
    const i64 from = kept.place(j);
    const float most = y[j], gradient = dy[j];
    int equals = 0;
    for (i64 r = threadIdx.x; r < n; r += blockDim.x) equals += x[from + reduced.place(r)] == most;
    equals = block_sum(equals);
    for (i64 r = threadIdx.x; r < n; r += blockDim.x) {
      const i64 at = from + reduced.place(r);
      dx[at] = x[at] == most ? gradient / equals : 0.0f;
    }
  }
}
// A block makes a part of the sum, or several, which the last kernel adds up.
extern "C" __global__ void sum_squares(double* sums, const float* x, i64 n, i64 parts) {
  for (i64 part = blockIdx.x; part < parts; part += gridDim.x) {
    double sum = 0;
    for (i64 i = part * blockDim.x + threadIdx.x; i < n; i += parts * blockDim.x) {
      sum += (double)x[i] * x[i];
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) sums[part] = sum;
  }
}
extern "C" __global__ void root_of_sum(float* y, const double* parts, i64 n) {
  double sum = 0;
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) sum += parts[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) y[0] = (float)sqrt(sum);
}
)";

struct Axes {
  std::int64_t rank = 0;
  std::array<std::int64_t, Shape::kMaxRank> size{}, step{};

  void add(std::int64_t extent, std::int64_t distance) {
    size[std::size_t(rank)] = extent;
    step[std::size_t(rank++)] = distance;
  }
};

/// Groups the elements of x, one group for each output.
struct Groups {
  Groups(const Node& node, const Shape& x) {
    const std::vector<bool> is_reduced = reduced_axes(node.attributes(), x.rank());
    std::vector<std::int64_t> steps(std::size_t(x.rank()), 1);
    for (int d = x.rank() - 2; d >= 0; --d) {
      steps[std::size_t(d)] = steps[std::size_t(d) + 1] * x[d + 1];
    }
    for (int d = 0; d < x.rank(); ++d) {
      const auto k = std::size_t(d);
      (is_reduced[k] ? n : outputs) *= x[d];
      (is_reduced[k] ? reduced : kept).add(x[d], steps[k]);
    }
  }
  std::vector<CudaArgument> arguments(std::vector<CudaArgument> pointers) const {
    pointers.push_back(CudaArgument::integer(outputs));
    pointers.push_back(CudaArgument::integer(n));
    pointers.push_back(CudaArgument::of(kept));
    pointers.push_back(CudaArgument::of(reduced));
    return pointers;
  }

  /// True if x can be read as a matrix of which each column is reduced.
  bool are_columns() const {
    return kept.rank == 0 || reduced.rank == 0 ||
           kept.step[0] * kept.size[0] <= reduced.step[std::size_t(reduced.rank) - 1];
  }

  std::int64_t outputs = 1, n = 1;  // n: elements per group
  Axes kept, reduced;
};

CudaWork global_norm(const Node& node) {
  CudaWork work{kReduceSource, {}, 0, {}};
  std::int64_t parts = 0;
  for (std::size_t k = 0; k < node.inputs().size(); ++k) {
    const std::int64_t n = node.input(int(k)).shape().elements();
    const std::int64_t own = std::min(kMostParts, blocks_for(n));
    work.launches.push_back(
        {"sum_squares",
         own,
         {CudaArgument::scratch(std::size_t(parts) * sizeof(double)), CudaArgument::input(k),
          CudaArgument::integer(n), CudaArgument::integer(own)}});
    parts += own;
  }
  work.scratch_bytes = std::size_t(parts) * sizeof(double);
  work.launches.push_back(
      {"root_of_sum",
       1,
       {CudaArgument::output(0), CudaArgument::scratch(0), CudaArgument::integer(parts)}});
  return work;
}

}  // namespace

std::optional<CudaWork> reduce_work(const Node& node) {
  const std::string& op = node.op().name;
  if (op == "global_norm") return global_norm(node);
  const bool mean = op == "reduce_mean";
  const CudaArgument out = CudaArgument::output(0), in = CudaArgument::input(0);
  if (mean || op == "reduce_sum") {
    const Groups groups(node, node.input(0).shape());
    const double factor = mean ? 1.0 / double(groups.n) : 1.0;
    if (groups.are_columns()) {
      CudaWork work{kSumColumns, {}, 0, {}};
      sum_columns(work, out, in, groups.n, groups.outputs, factor);
      return work;
    }
    CudaLaunch launch{"reduce_sum", groups.outputs, groups.arguments({out, in})};
    launch.arguments.push_back(CudaArgument::of(factor));
    return CudaWork{kReduceSource, {launch}, 0, {}};
  }
  if (op == "reduce_max") {
    const Groups groups(node, node.input(0).shape());
    return CudaWork{
        kReduceSource, {{"reduce_max", groups.outputs, groups.arguments({out, in})}}, 0, {}};
  }
  if (op == "reduce_max_grad") {
    const Groups groups(node, node.input(1).shape());
    return CudaWork{kReduceSource,
                    {{"reduce_max_grad", groups.outputs,
                      groups.arguments({out, in, CudaArgument::input(1), CudaArgument::input(2)})}},
                    0,
                    {}};
  }
  return {};
}

}  // namespace paceline::cuda
