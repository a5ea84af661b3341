// fused_elementwise: y (…) from inputs (…) or (1); computes each step's result for one element at a
// time.
#include <algorithm>

#include "graph/fused_program.h"
#include "kernels/fused_step.h"
#include "kernels/naive/naive_kernels.h"

namespace paceline {

namespace {

template <typename T>
class FusedKernel : public Kernel {
 public:
  explicit FusedKernel(const Node& node)
      : program_(parse_fused_program(node.attributes().get<std::string>("program"))) {}
  std::size_t scratch_bytes() const override { return program_.size() * sizeof(T); }

  void run(const KernelCall& call) override {
    T* results = reinterpret_cast<T*>(call.scratch.data());
    for (std::int64_t i = 0; i < call.outputs[0].shape.elements(); ++i) {
      for (std::size_t j = 0; j < program_.size(); ++j) {
        const auto& operands = program_[j].operands;
        const auto at = [&](std::size_t k) {
          return operand(call, results, operands[std::min(k, operands.size() - 1)], i);
        };
        results[j] = fused_step(program_[j], at(0), at(1), at(2));
      }
      call.outputs[0].as<T>()[i] = results[program_.size() - 1];
    }
  }

 private:
  static T operand(const KernelCall& call, const T* results, const FusedOperand& operand,
                   std::int64_t i) {
    if (operand.kind == FusedOperand::Kind::kStep) return results[operand.index];
    const TensorView& input = call.inputs[std::size_t(operand.index)];
    return input.as<T>()[input.shape.elements() == 1 ? 0 : i];
  }

  const std::vector<FusedStep> program_;
};

std::unique_ptr<Kernel> make_fused(const Node& node, ThreadPool&) {
  const DType dtype = node.outputs()[0].dtype;
  if (dtype == DType::kFloat32) return std::make_unique<FusedKernel<float>>(node);
  return std::make_unique<FusedKernel<double>>(node);
}

}  // namespace

void add_naive_fused_kernels(KernelTable& table) { table.add("fused_elementwise", &make_fused); }

}  // namespace paceline
