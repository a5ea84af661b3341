// Running sums of float32, accumulated in double. A thread sums up to kLines neighbouring lines
// along the axis together.
#include <algorithm>
#include <array>

#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/grains.h"
#include "ops/axis.h"

namespace paceline {

namespace {

constexpr std::int64_t kLines = 256;  // lines summed together

class CumulativeSumKernel : public Kernel {
 public:
  CumulativeSumKernel(const Node& node, ThreadPool& pool)
      : exclusive_(node.attributes().get<bool>("exclusive")),
        reverse_(node.attributes().get<bool>("reverse")),
        pool_(pool) {
    const Shape& shape = node.outputs()[0].shape;
    const int axis = axis_of(node);
    length_ = shape[axis];
    for (int d = axis + 1; d < shape.rank(); ++d) inner_ *= shape[d];
    for (int d = 0; d < axis; ++d) outer_ *= shape[d];
    groups_ = (inner_ + kLines - 1) / kLines;
  }

  void run(const KernelCall& call) override {
    const std::int64_t of_group = std::max<std::int64_t>(1, length_ * std::min(inner_, kLines));
    pool_.parallel_for(outer_ * groups_, (kElementsGrain + of_group - 1) / of_group,
                       [&](std::int64_t begin, std::int64_t end) {
                         for (std::int64_t i = begin; i < end; ++i) run_group(call, i);
                       });
  }

 private:
  void run_group(const KernelCall& call, std::int64_t group) const {
    const std::int64_t first = group % groups_ * kLines;
    const std::int64_t lines = std::min(kLines, inner_ - first);
    const std::int64_t offset = group / groups_ * length_ * inner_ + first;
    std::array<double, kLines> sums{};
    for (std::int64_t i = 0; i < length_; ++i) {
      const std::int64_t at = offset + (reverse_ ? length_ - 1 - i : i) * inner_;
      add_row(call.inputs[0].as<float>() + at, call.outputs[0].as<float>() + at, sums.data(),
              lines);
    }
  }

  void add_row(const float* x, float* y, double* sums, std::int64_t n) const {
    for (std::int64_t i = 0; i < n; ++i) {
      const double before = sums[i];
      sums[i] += double(x[i]);
      y[i] = float(exclusive_ ? before : sums[i]);
    }
  }

  const bool exclusive_, reverse_;
  std::int64_t outer_ = 1, length_ = 0, inner_ = 1, groups_ = 0;
  ThreadPool& pool_;
};

}  // namespace

void add_cpu_cumulative_sum_kernels(KernelTable& table) {
  table.add("cumulative_sum", make_float_kernel_of<CumulativeSumKernel>);
}

}  // namespace paceline
