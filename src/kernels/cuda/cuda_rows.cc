// Ops on rows of the last dimension: softmax, layer norm, metrics, cumulative sums. A block handles
// one row; in arg_max and cumulative_sum, a thread does.
#include "kernels/cuda/cuda_work.h"
#include "ops/axis.h"
#include "paceline/op.h"

namespace paceline::cuda {
namespace {

const char* const kRowSource = R"(
extern "C" __global__ void softmax(float* y, const float* x, i64 rows, i64 n) {
  for (i64 r = blockIdx.x; r < rows; r += gridDim.x) {
    const float* from = x + r * n;
    float most = -1.0f / 0.0f;
    for (i64 i = threadIdx.x; i < n; i += blockDim.x) most = larger(most, from[i]);
    most = block_max(most);
    double sum = 0;
    for (i64 i = threadIdx.x; i < n; i += blockDim.x) sum += expf(from[i] - most);
    sum = block_sum(sum);
    for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
      y[r * n + i] = (float)(expf(from[i] - most) / sum);
    }
  }
}
extern "C" __global__ void softmax_grad(float* dx, const float* dy, const float* y, i64 rows,
                                        i64 n) {
  for (i64 r = blockIdx.x; r < rows; r += gridDim.x) {
    double sum = 0;
    for (i64 i = r * n + threadIdx.x; i < (r + 1) * n; i += blockDim.x) {
      sum += (double)dy[i] * y[i];
    }
    sum = block_sum(sum);
    for (i64 i = r * n + threadIdx.x; i < (r + 1) * n; i += blockDim.x) {
      dx[i] = (float)(y[i] * (dy[i] - sum));
    }
  }
}
extern "C" __global__ void layer_norm(float* y, float* means, float* scales, const float* x,
                                      const float* gains, const float* offsets, i64 rows, i64 n,
                                      double epsilon) {
  for (i64 r = blockIdx.x; r < rows; r += gridDim.x) {
    const float* from = x + r * n;
    double sum = 0, squares = 0;
    for (i64 i = threadIdx.x; i < n; i += blockDim.x) sum += from[i];
    const double mean = block_sum(sum) / n;
    for (i64 i = threadIdx.x; i < n; i += blockDim.x) squares += (from[i] - mean) * (from[i] - mean);
    const double scale = 1 / sqrt(block_sum(squares) / n + epsilon);
    for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
      y[r * n + i] = (float)((from[i] - mean) * scale * gains[i] + offsets[i]);
    }
    if (threadIdx.x == 0) {
      means[r] = (float)mean;
      scales[r] = (float)scale;
    }
  }
}
// What is summed over the rows afterwards goes to `units` where offsets' gradients are dy itself.
extern "C" __global__ void layer_norm_grad(float* dx, float* units, const float* dy, const float* x,
                                           const float* gains, const float* means,
                                           const float* scales, i64 rows, i64 n) {
  for (i64 r = blockIdx.x; r < rows; r += gridDim.x) {
    const double mean = means[r], scale = scales[r];
    double sum = 0, products = 0;
    for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
      const double g = (double)gains[i] * dy[r * n + i];
      const double unit = (x[r * n + i] - mean) * scale;
      sum += g;
      products += g * unit;
      units[r * n + i] = (float)(dy[r * n + i] * unit);
    }
    sum = block_sum(sum) / n;
    products = block_sum(products) / n;
    for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
      const double g = (double)gains[i] * dy[r * n + i];
      const double unit = (x[r * n + i] - mean) * scale;
      dx[r * n + i] = (float)(scale * (g - sum - unit * products));
    }
  }
}
extern "C" __global__ void arg_max(int* y, const float* x, i64 rows, i64 n) {
  EACH(r, rows) {
    i64 best = 0;
    for (i64 i = 1; i < n; ++i) {
      if (x[r * n + best] < x[r * n + i]) best = i;
    }
    y[r] = (int)best;
  }
}
extern "C" __global__ void top_k_rows(float* right, const float* x, const int* labels, i64 rows,
                                      i64 n, i64 k, u64* fault) {
  for (i64 r = blockIdx.x; r < rows; r += gridDim.x) {
    const bool known = in_range(labels[r], r, n, fault);
    const i64 label = known ? labels[r] : 0;
    const float own = x[r * n + label];
    int before = 0;
    for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
      before += i < label ? x[r * n + i] >= own : i > label && x[r * n + i] > own;
    }
    before = block_sum(before);
    if (threadIdx.x == 0) right[r] = before < k && own == own ? 1.0f : 0.0f;
  }
}
extern "C" __global__ void mean_of(float* y, const float* x, i64 n) {
  double sum = 0;
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) sum += x[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) y[0] = (float)(sum / n);
}
extern "C" __global__ void cumulative_sum(float* y, const float* x, i64 lines, i64 n, i64 inner,
                                          i64 exclusive, i64 reverse) {
  EACH(line, lines) {
    const i64 first = line / inner * inner * n + line % inner;
    double sum = 0;
    for (i64 i = 0; i < n; ++i) {
      const i64 at = first + (reverse ? n - 1 - i : i) * inner;
      const double before = sum;
      sum += x[at];
      y[at] = (float)(exclusive ? before : sum);
    }
  }
}
)";

using A = CudaArgument;

CudaWork layer_norm_grad(const Node& node) {
  const std::int64_t n = node.outputs()[1].shape[0], rows = node.input(3).shape().elements();
  CudaWork work{std::string(kRowSource) + kSumColumns, {}, 0, {}};
  const A products = A::scratch(work.add_scratch(std::size_t(n * rows) * sizeof(float)));
  // This sum precedes dx, which may use the memory of dy.
  sum_columns(work, A::output(2), A::input(0), rows, n);
  work.launches.push_back({"layer_norm_grad",
                           rows,
                           {A::output(0), products, A::input(0), A::input(1), A::input(2),
                            A::input(3), A::input(4), A::integer(rows), A::integer(n)}});
  sum_columns(work, A::output(1), products, rows, n);
  return work;
}

CudaWork top_k_accuracy(const Node& node) {
  const Shape& x = node.input(0).shape();
  CudaWork work{kRowSource, {}, std::size_t(x[0]) * sizeof(float), CudaFault{"label", x[1]}};
  work.launches = {{"top_k_rows",
                    x[0],
                    {A::scratch(0), A::input(0), A::input(1), A::integer(x[0]), A::integer(x[1]),
                     A::integer(node.attributes().get<std::int64_t>("k")), A::fault()}},
                   {"mean_of", 1, {A::output(0), A::scratch(0), A::integer(x[0])}}};
  return work;
}

CudaWork cumulative_sum(const Node& node) {
  const Shape& shape = node.outputs()[0].shape;
  const int axis = axis_of(node);
  std::int64_t inner = 1;
  for (int d = axis + 1; d < shape.rank(); ++d) inner *= shape[d];
  const std::int64_t n = shape[axis], lines = n == 0 ? 0 : shape.elements() / n;
  return {kRowSource,
          {{"cumulative_sum",
            blocks_for(lines),
            {A::output(0), A::input(0), A::integer(lines), A::integer(n), A::integer(inner),
             A::integer(node.attributes().get<bool>("exclusive")),
             A::integer(node.attributes().get<bool>("reverse"))}}},
          0,
          {}};
}

}  // namespace

std::optional<CudaWork> row_work(const Node& node) {
  const std::string& op = node.op().name;
  const auto of_rows = [&](const char* function, std::vector<A> arguments) {
    const Shape& shape = node.input(0).shape();
    const std::int64_t n = shape[-1], rows = n == 0 ? 0 : shape.elements() / n;
    arguments.push_back(A::integer(rows));
    arguments.push_back(A::integer(n));
    return CudaWork{kRowSource, {{function, rows, std::move(arguments)}}, 0, {}};
  };
  if (op == "softmax") return of_rows("softmax", {A::output(0), A::input(0)});
  if (op == "softmax_grad")
    return of_rows("softmax_grad", {A::output(0), A::input(0), A::input(1)});
  if (op == "layer_norm") {
    CudaWork work = of_rows("layer_norm", {A::output(0), A::output(1), A::output(2), A::input(0),
                                           A::input(1), A::input(2)});
    work.launches[0].arguments.push_back(A::of(node.attributes().get<double>("epsilon")));
    return work;
  }
  if (op == "layer_norm_grad") return layer_norm_grad(node);
  if (op == "arg_max") {
    CudaWork work = of_rows("arg_max", {A::output(0), A::input(0)});
    work.launches[0].blocks = blocks_for(work.launches[0].blocks);
    return work;
  }
  if (op == "top_k_accuracy") return top_k_accuracy(node);
  if (op == "cumulative_sum") return cumulative_sum(node);
  return {};
}

}  // namespace paceline::cuda
