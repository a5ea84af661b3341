#include <algorithm>

#include "kernels/index_check.h"
#include "kernels/naive/naive_kernels.h"

namespace paceline {

namespace {

template <typename T>
struct OneHot {
  static void run(const Node& node, const KernelCall& call) {
    const TensorView& y = call.outputs[0];
    const std::int64_t depth = y.shape[-1], count = call.inputs[0].shape.elements();
    const std::span ids(call.inputs[0].as<std::int32_t>(), std::size_t(count));
    check_indices(node, "id", ids, depth);
    std::fill_n(y.as<T>(), y.shape.elements(), T(0));
    for (std::int64_t i = 0; i < count; ++i) y.as<T>()[i * depth + ids[std::size_t(i)]] = T(1);
  }
};

}  // namespace

void add_naive_one_hot_kernels(KernelTable& table) {
  table.add("one_hot", make_naive_kernel_of<OneHot>);
}

}  // namespace paceline
