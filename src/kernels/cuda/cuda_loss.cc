// Losses and their gradients.
#include "kernels/cuda/cuda_work.h"
#include "ops/label_smoothing.h"
#include "paceline/op.h"

namespace paceline::cuda {
namespace {

// In the kernels, the wanted probability of a class is `each`, and that of the label is `each` +
// `own`.
const char* const kLossSource = R"(
// Writes the loss of a row and the logarithm of its sum of exponentials, or its gradient.
extern "C" __global__ void cross_entropy(float* losses, float* log_sums, float* dx, const float* x,
                                         const int* labels, const float* gradients,
                                         const float* biases, i64 rows, i64 n, double each,
                                         double own, u64* fault) {
  for (i64 r = blockIdx.x; r < rows; r += gridDim.x) {
    const float* from = x + r * n;
    const i64 label = in_range(labels[r], r, n, fault) ? labels[r] : 0;
    float most = -1.0f / 0.0f;
    for (i64 j = threadIdx.x; j < n; j += blockDim.x) {
      most = larger(most, biases ? from[j] + biases[j] : from[j]);
    }
    most = block_max(most);
    double sum = 0, wanted = 0;
    for (i64 j = threadIdx.x; j < n; j += blockDim.x) {
      const float logit = biases ? from[j] + biases[j] : from[j];
      sum += expf(logit - most);
      wanted += (each + (j == label ? own : 0)) * logit;
    }
    sum = block_sum(sum);
    wanted = block_sum(wanted);
    const double log_sum = most + log(sum);
    if (threadIdx.x == 0) {
      losses[r] = (float)(log_sum - wanted);
      if (log_sums) log_sums[r] = (float)log_sum;
    }
    if (!dx) continue;
    for (i64 j = threadIdx.x; j < n; j += blockDim.x) {
      const float logit = biases ? from[j] + biases[j] : from[j];
      const double probability = expf(logit - most) / sum;
      dx[r * n + j] = (float)((probability - (each + (j == label ? own : 0))) * gradients[r]);
    }
  }
}
extern "C" __global__ void cross_entropy_grad(float* dx, const float* x, const int* labels,
                                              const float* log_sums, const float* gradients,
                                              i64 rows, i64 n, double each, double own,
                                              u64* fault) {
  for (i64 r = blockIdx.x; r < rows; r += gridDim.x) {
    const i64 label = in_range(labels[r], r, n, fault) ? labels[r] : 0;
    for (i64 j = threadIdx.x; j < n; j += blockDim.x) {
      const float wanted = (float)(each + (j == label ? own : 0));
      dx[r * n + j] = (expf(x[r * n + j] - log_sums[r]) - wanted) * gradients[r];
    }
  }
}
// A block makes a part of the sum, or several.
extern "C" __global__ void squared_error(double* sums, const float* a, const float* b, i64 n,
                                         i64 parts) {
  for (i64 part = blockIdx.x; part < parts; part += gridDim.x) {
    double sum = 0;
    for (i64 i = part * blockDim.x + threadIdx.x; i < n; i += parts * blockDim.x) {
      sum += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) sums[part] = sum;
  }
}
extern "C" __global__ void mean_of_parts(float* y, const double* parts, i64 count, i64 n) {
  double sum = 0;
  for (i64 i = threadIdx.x; i < count; i += blockDim.x) sum += parts[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) y[0] = (float)(sum / n);
}
extern "C" __global__ void squared_error_grad(float* dx, const float* a, const float* b,
                                              const float* gradient, i64 n) {
  const float factor = gradient[0] * 2.0f / n;
  EACH(i, n) dx[i] = factor * (a[i] - b[i]);
}
)";

using A = CudaArgument;

CudaWork cross_entropy(const Node& node) {
  const Shape& x = node.input(0).shape();
  const bool with_gradient = node.op().name == "softmax_cross_entropy_with_grad";
  const bool biased = node.inputs().size() == 4;
  const auto wanted = WantedProbabilities::of(node.attributes(), x[1]);
  CudaWork work{kLossSource, {}, 0, CudaFault{"label", x[1]}};
  work.launches.push_back(
      {"cross_entropy",
       x[0],
       {A::output(with_gradient ? 1 : 0), with_gradient ? A::null() : A::output(1),
        with_gradient ? A::output(0) : A::null(), A::input(0), A::input(1),
        with_gradient ? A::input(2) : A::null(), biased ? A::input(3) : A::null(), A::integer(x[0]),
        A::integer(x[1]), A::of(wanted.of_each), A::of(wanted.of_label), A::fault()}});
  if (!biased) return work;
  work.source += kSumColumns;
  sum_columns(work, A::output(2), A::output(0), x[0], x[1]);
  return work;
}

CudaWork cross_entropy_grad(const Node& node) {
  const Shape& x = node.input(0).shape();
  const auto wanted = WantedProbabilities::of(node.attributes(), x[1]);
  CudaWork work{kLossSource, {}, 0, CudaFault{"label", x[1]}};
  work.launches.push_back(
      {"cross_entropy_grad",
       x[0],
       {A::output(0), A::input(0), A::input(1), A::input(2), A::input(3), A::integer(x[0]),
        A::integer(x[1]), A::of(wanted.of_each), A::of(wanted.of_label), A::fault()}});
  return work;
}

CudaWork mean_squared_error(const Node& node) {
  const std::int64_t n = node.input(0).shape().elements();
  const std::int64_t parts = std::min(kMostParts, blocks_for(n));
  CudaWork work{kLossSource, {}, std::size_t(parts) * sizeof(double), {}};
  work.launches = {
      {"squared_error",
       parts,
       {A::scratch(0), A::input(0), A::input(1), A::integer(n), A::integer(parts)}},
      {"mean_of_parts", 1, {A::output(0), A::scratch(0), A::integer(parts), A::integer(n)}}};
  return work;
}

}  // namespace

std::optional<CudaWork> loss_work(const Node& node) {
  const std::string& op = node.op().name;
  if (op == "softmax_cross_entropy" || op == "softmax_cross_entropy_with_grad") {
    return cross_entropy(node);
  }
  if (op == "softmax_cross_entropy_grad") return cross_entropy_grad(node);
  if (op == "mean_squared_error") return mean_squared_error(node);
  if (op == "mean_squared_error_grad") {
    const std::int64_t n = node.input(0).shape().elements();
    return CudaWork{kLossSource,
                    {{"squared_error_grad",
                      blocks_for(n),
                      {A::output(0), A::input(0), A::input(1), A::input(2), A::integer(n)}}},
                    0,
                    {}};
  }
  return {};
}

}  // namespace paceline::cuda
