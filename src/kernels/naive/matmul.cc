#include "kernels/naive/naive_kernels.h"

namespace paceline {

namespace {

double number(double x) { return x; }
double number(BFloat16 x) { return double(static_cast<float>(x)); }

struct Product {
  std::int64_t m, n, k;
  bool transpose_a, transpose_b;
};

/// Computes C (m,n) = op(A) · op(B). A and B have the type In, and C has the type Out.
template <typename In, typename Out>
void multiply_matrices(const Product& p, const In* a, const In* b, Out* c) {
  for (std::int64_t i = 0; i < p.m; ++i) {
    for (std::int64_t j = 0; j < p.n; ++j) {
      double sum = 0;
      for (std::int64_t l = 0; l < p.k; ++l) {
        sum += number(a[p.transpose_a ? l * p.m + i : i * p.k + l]) *
               number(b[p.transpose_b ? j * p.k + l : l * p.n + j]);
      }
      c[i * p.n + j] = Out(sum);
    }
  }
}

/// Multiplies the matrices in the last two dimensions, for each index of the others.
template <typename In, typename Out>
void multiply(const Node& node, const KernelCall& call) {
  const bool ta = node.attributes().get<bool>("transpose_a");
  const bool tb = node.attributes().get<bool>("transpose_b");
  const TensorView &a = call.inputs[0], &b = call.inputs[1], &c = call.outputs[0];
  const Product p{c.shape[-2], c.shape[-1], a.shape[ta ? -2 : -1], ta, tb};
  std::int64_t products = 1;
  for (int d = 0; d + 2 < c.shape.rank(); ++d) products *= c.shape[d];
  for (std::int64_t i = 0; i < products; ++i) {
    multiply_matrices(p, a.as<In>() + i * p.m * p.k, b.as<In>() + i * p.k * p.n,
                      c.as<Out>() + i * p.m * p.n);
  }
}

template <typename T>
struct NaiveMatmul {
  static void run(const Node& node, const KernelCall& call) { multiply<T, T>(node, call); }
};

/// Adds a bias (n) to each row of a product (m,n) of matrices of type In, then applies the relu.
template <typename In, typename Out>
void multiply_and_bias(const Node& node, const KernelCall& call) {
  multiply<In, Out>(node, call);
  const bool relu = node.attributes().get<bool>("relu");
  const std::int64_t columns = call.inputs[2].shape[0];
  const Out* const bias = call.inputs[2].as<Out>();
  Out* const c = call.outputs[0].as<Out>();
  for (std::int64_t i = 0; i < call.outputs[0].shape.elements(); ++i) {
    c[i] += bias[i % columns];
    if (relu && c[i] < 0) c[i] = 0;
  }
}

std::unique_ptr<Kernel> make_matmul_bias(const Node& node, ThreadPool&) {
  switch (node.input(0).dtype()) {
    case DType::kBFloat16:
      return std::make_unique<PlainKernel>(node, &multiply_and_bias<BFloat16, float>);
    case DType::kFloat32:
      return std::make_unique<PlainKernel>(node, &multiply_and_bias<float, float>);
    case DType::kFloat64:
      return std::make_unique<PlainKernel>(node, &multiply_and_bias<double, double>);
    default:
      return nullptr;
  }
}

std::unique_ptr<Kernel> make_bfloat16_matmul(const Node& node, ThreadPool&) {
  return std::make_unique<PlainKernel>(node, &multiply<BFloat16, float>);
}

}  // namespace

void add_naive_matmul_kernels(KernelTable& table) {
  table.add("matmul", make_naive_kernel_of<NaiveMatmul>);
  table.add("batch_matmul", make_naive_kernel_of<NaiveMatmul>);
  table.add("matmul_bfloat16", make_bfloat16_matmul);
  table.add("matmul_bias", make_matmul_bias);
}

}  // namespace paceline
