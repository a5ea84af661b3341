#include "kernels/naive/naive_kernels.h"

namespace paceline {

namespace {

double number(double x) { return x; }
double number(BFloat16 x) { return double(static_cast<float>(x)); }

/// C (m,n) of type Out = op(A) · op(B) of type In.
template <typename In, typename Out>
void multiply(const Node& node, const KernelCall& call) {
  const bool ta = node.attributes().get<bool>("transpose_a");
  const bool tb = node.attributes().get<bool>("transpose_b");
  const TensorView &a = call.inputs[0], &b = call.inputs[1], &c = call.outputs[0];
  const std::int64_t m = c.shape[0], n = c.shape[1], k = a.shape[ta ? 0 : 1];
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::int64_t l = 0; l < k; ++l) {
        sum += number(a.as<In>()[ta ? l * m + i : i * k + l]) *
               number(b.as<In>()[tb ? j * k + l : l * n + j]);
      }
      c.as<Out>()[i * n + j] = Out(sum);
    }
  }
}

template <typename T>
struct NaiveMatmul {
  static void run(const Node& node, const KernelCall& call) { multiply<T, T>(node, call); }
};

std::unique_ptr<Kernel> make_bfloat16_matmul(const Node& node, ThreadPool&) {
  return std::make_unique<PlainKernel>(node, &multiply<BFloat16, float>);
}

}  // namespace

void add_naive_matmul_kernels(KernelTable& table) {
  table.add("matmul", make_naive_kernel_of<NaiveMatmul>);
  table.add("matmul_bfloat16", make_bfloat16_matmul);
}

}  // namespace paceline
