#include "kernels/index_check.h"
#include "kernels/naive/naive_kernels.h"
#include "kernels/ranking.h"

namespace paceline {

namespace {

template <typename T>
void arg_max(const Node&, const KernelCall& call) {
  const std::int64_t rows = call.inputs[0].shape[0], columns = call.inputs[0].shape[1];
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* x = call.inputs[0].as<T>() + r * columns;
    call.outputs[0].as<std::int32_t>()[r] = index_of_largest(x, columns);
  }
}

// Chooses by the type of its input, since output 0 holds indices.
std::unique_ptr<Kernel> make_arg_max(const Node& node, ThreadPool&) {
  const bool wide = node.input(0).dtype() == DType::kFloat64;
  return std::make_unique<PlainKernel>(node, wide ? &arg_max<double> : &arg_max<float>);
}

template <typename T>
struct NaiveTopKAccuracy {
  static void run(const Node& node, const KernelCall& call) {
    const std::int64_t rows = call.inputs[0].shape[0], columns = call.inputs[0].shape[1];
    const std::int64_t k = node.attributes().get<std::int64_t>("k");
    const std::span labels(call.inputs[1].as<std::int32_t>(), std::size_t(rows));
    check_indices(node, "label", labels, columns);
    std::int64_t right = 0;
    for (std::int64_t r = 0; r < rows; ++r) {
      const T* x = call.inputs[0].as<T>() + r * columns;
      right += among_largest(x, columns, labels[std::size_t(r)], k) ? 1 : 0;
    }
    call.outputs[0].as<T>()[0] = T(double(right) / double(rows));
  }
};

}  // namespace

void add_naive_metric_kernels(KernelTable& table) {
  table.add("arg_max", make_arg_max);
  table.add("top_k_accuracy", make_naive_kernel_of<NaiveTopKAccuracy>);
}

}  // namespace paceline
