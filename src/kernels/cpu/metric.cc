#include <numeric>

#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/grains.h"
#include "kernels/cpu/vector_math.h"
#include "kernels/index_check.h"
#include "kernels/ranking.h"

namespace paceline {

namespace {

class ArgMaxKernel : public Kernel {
 public:
  ArgMaxKernel(const Node&, ThreadPool& pool) : pool_(pool) {}

  void run(const KernelCall& call) override {
    const std::int64_t rows = call.inputs[0].shape[0], columns = call.inputs[0].shape[1];
    const float* x = call.inputs[0].as<float>();
    pool_.parallel_for(rows, rows_grain(columns), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        call.outputs[0].as<std::int32_t>()[r] =
            std::int32_t(vector_arg_max(x + r * columns, columns));
      }
    });
  }

 private:
  ThreadPool& pool_;
};

class TopKAccuracyKernel : public Kernel {
 public:
  TopKAccuracyKernel(const Node& node, ThreadPool& pool)
      : node_(node), pool_(pool), k_(node.attributes().get<std::int64_t>("k")) {}

  std::size_t scratch_bytes() const override { return std::size_t(node_.input(0).shape()[0]); }

  void run(const KernelCall& call) override {
    const std::int64_t rows = call.inputs[0].shape[0], columns = call.inputs[0].shape[1];
    const float* x = call.inputs[0].as<float>();
    const std::span labels(call.inputs[1].as<std::int32_t>(), std::size_t(rows));
    check_indices(node_, "label", labels, columns);
    const std::span right(reinterpret_cast<unsigned char*>(call.scratch.data()), std::size_t(rows));
    pool_.parallel_for(rows, rows_grain(columns), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        const std::int32_t label = labels[std::size_t(r)];
        right[std::size_t(r)] = among_largest(x + r * columns, columns, label, k_) ? 1 : 0;
      }
    });
    const std::int64_t count = std::accumulate(right.begin(), right.end(), std::int64_t{0});
    *call.outputs[0].as<float>() = float(double(count) / double(rows));
  }

 private:
  const Node& node_;
  ThreadPool& pool_;
  const std::int64_t k_;
};

// Chooses by the type of its input, since output 0 holds indices.
std::unique_ptr<Kernel> make_arg_max(const Node& node, ThreadPool& pool) {
  if (node.input(0).dtype() != DType::kFloat32) return nullptr;
  return std::make_unique<ArgMaxKernel>(node, pool);
}

}  // namespace

void add_cpu_metric_kernels(KernelTable& table) {
  table.add("arg_max", make_arg_max);
  table.add("top_k_accuracy", make_float_kernel_of<TopKAccuracyKernel>);
}

}  // namespace paceline
