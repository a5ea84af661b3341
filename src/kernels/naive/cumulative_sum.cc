#include "kernels/naive/naive_kernels.h"
#include "ops/axis.h"

namespace paceline {

namespace {

template <typename T>
struct NaiveCumulativeSum {
  static void run(const Node& node, const KernelCall& call) {
    const Shape& shape = call.outputs[0].shape;
    const int axis = axis_of(node);
    std::int64_t inner = 1;
    for (int d = axis + 1; d < shape.rank(); ++d) inner *= shape[d];
    for (std::int64_t i = 0; i < shape.elements(); ++i) {
      const std::int64_t along = i / inner % shape[axis];
      if (along == 0) line(node, call, i, shape[axis], inner);
    }
  }

 private:
  /// Sums `n` elements that begin at `first` and lie `stride` apart.
  static void line(const Node& node, const KernelCall& call, std::int64_t first, std::int64_t n,
                   std::int64_t stride) {
    const bool exclusive = node.attributes().get<bool>("exclusive");
    const bool reverse = node.attributes().get<bool>("reverse");
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t at = first + (reverse ? n - 1 - i : i) * stride;
      const double before = sum;
      sum += double(call.inputs[0].as<T>()[at]);
      call.outputs[0].as<T>()[at] = T(exclusive ? before : sum);
    }
  }
};

}  // namespace

void add_naive_cumulative_sum_kernels(KernelTable& table) {
  table.add("cumulative_sum", make_naive_kernel_of<NaiveCumulativeSum>);
}

}  // namespace paceline
