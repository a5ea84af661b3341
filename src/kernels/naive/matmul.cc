#include "kernels/naive/naive_kernels.h"

namespace paceline {

namespace {

template <typename T>
struct NaiveMatmul {
  static void run(const Node& node, const KernelCall& call) {
    const bool ta = node.attributes().get<bool>("transpose_a");
    const bool tb = node.attributes().get<bool>("transpose_b");
    const TensorView &a = call.inputs[0], &b = call.inputs[1], &c = call.outputs[0];
    const std::int64_t m = c.shape[0], n = c.shape[1], k = a.shape[ta ? 0 : 1];
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (std::int64_t l = 0; l < k; ++l) {
          const double x = a.as<T>()[ta ? l * m + i : i * k + l];
          const double y = b.as<T>()[tb ? j * k + l : l * n + j];
          sum += x * y;
        }
        c.as<T>()[i * n + j] = T(sum);
      }
    }
  }
};

}  // namespace

void add_naive_matmul_kernels(KernelTable& table) {
  table.add("matmul", make_naive_kernel_of<NaiveMatmul>);
}

}  // namespace paceline
