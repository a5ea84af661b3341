// fused_elementwise: y (…) from inputs (…) or (1): each step's result for one element at a time.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "graph/fused_program.h"
#include "kernels/naive/naive_kernels.h"
#include "kernels/ranking.h"

namespace paceline {

namespace {

template <typename T>
T apply_step(const FusedStep& step, T a, T b, T c) {
  const std::string& op = step.op;
  const T number = T(step.number);
  if (op == "add") return a + b;
  if (op == "sub") return a - b;
  if (op == "mul") return a * b;
  if (op == "div") return a / b;
  if (op == "scale") return a * number;
  if (op == "relu") return a < 0 ? T(0) : a;
  if (op == "leaky_relu") return a < 0 ? number * a : a;
  if (op == "sigmoid") return 1 / (1 + std::exp(-a));
  if (op == "tanh") return std::tanh(a);
  if (op == "exp") return std::exp(a);
  if (op == "log") return std::log(a);
  if (op == "sqrt") return std::sqrt(a);
  if (op == "square") return a * a;
  if (op == "abs") return std::abs(a);
  if (op == "sign") return sign_of(a);
  if (op == "erf") return std::erf(a);
  if (op == "maximum") return larger(a, b);
  if (op == "minimum") return smaller(a, b);
  if (op == "pow") return std::pow(a, b);
  if (op == "greater") return T(a > b);
  if (op == "greater_equal") return T(a >= b);
  if (op == "equal") return T(a == b);
  if (op == "where") return a != 0 ? b : c;
  if (op == "relu_grad") return b > 0 ? a : T(0);
  if (op == "leaky_relu_grad") return b < 0 ? number * a : a;
  if (op == "sigmoid_grad") return a * b * (1 - b);
  PACELINE_CHECK(op == "tanh_grad");
  return a * (1 - b * b);
}

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
        results[j] = apply_step(program_[j], at(0), at(1), at(2));
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
