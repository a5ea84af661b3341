#include <cmath>

#include "kernels/naive/naive_kernels.h"

namespace paceline {

namespace {

template <typename T>
struct NaiveGlobalNorm {
  static void run(const Node&, const KernelCall& call) {
    double sum = 0;
    for (const TensorView& input : call.inputs) {
      for (std::int64_t i = 0; i < input.shape.elements(); ++i) {
        const double x = input.as<T>()[i];
        sum += x * x;
      }
    }
    call.outputs[0].as<T>()[0] = T(std::sqrt(sum));
  }
};

}  // namespace

void add_naive_norm_kernels(KernelTable& table) {
  table.add("global_norm", make_naive_kernel_of<NaiveGlobalNorm>);
}

}  // namespace paceline
