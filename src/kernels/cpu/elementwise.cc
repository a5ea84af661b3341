// Element-wise ops in float32: y (…) = f(x (…)), z = f(a, b) with broadcasting, and
// y (…,n) = f(x (…,n) + b (n)).
#include "kernels/cpu/broadcast_loop.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/vector_math.h"
#include "paceline/op.h"

namespace paceline {

namespace {

// A tile is worth handing to a thread from some 10 µs on.
constexpr std::int64_t kElementwiseGrain = 16 * 1024;

class UnaryKernel : public Kernel {
 public:
  UnaryKernel(const Node& node, ThreadPool& pool)
      : function_(*unary_function(node.op().name)),
        parameter_(function_parameter(node.attributes())),
        pool_(pool) {}

  void run(const KernelCall& call) override {
    const float* x = call.inputs[0].as<float>();
    float* y = call.outputs[0].as<float>();
    pool_.parallel_for(call.outputs[0].shape.elements(), kElementwiseGrain,
                       [&](std::int64_t begin, std::int64_t end) {
                         vector_unary(function_, parameter_, x + begin, y + begin, end - begin);
                       });
  }

 private:
  const UnaryFunction function_;
  const float parameter_;
  ThreadPool& pool_;
};

/// Also `bias`, which is add with a row.
class BinaryKernel : public Kernel {
 public:
  BinaryKernel(const Node& node, ThreadPool& pool)
      : function_(binary_function(node.op().name).value_or(BinaryFunction::kAdd)),
        parameter_(function_parameter(node.attributes())),
        loop_(node.outputs()[0].shape, node.input(0).shape(), node.input(1).shape()),
        pool_(pool) {}

  void run(const KernelCall& call) override {
    pool_.parallel_for(loop_.elements(), kElementwiseGrain,
                       [&](std::int64_t begin, std::int64_t end) { run_range(call, begin, end); });
  }

 private:
  void run_range(const KernelCall& call, std::int64_t begin, std::int64_t end) const {
    const float* a = call.inputs[0].as<float>();
    const float* b = call.inputs[1].as<float>();
    float* z = call.outputs[0].as<float>();
    loop_.for_runs(begin, end, [&](std::int64_t i, std::int64_t at_a, std::int64_t at_b, auto n) {
      vector_binary(function_, parameter_, {a + at_a, loop_.a_repeats()},
                    {b + at_b, loop_.b_repeats()}, z + i, n);
    });
  }

  const BinaryFunction function_;
  const float parameter_;
  const BroadcastLoop loop_;
  ThreadPool& pool_;
};

class BiasActivationKernel : public Kernel {
 public:
  BiasActivationKernel(const Node& node, ThreadPool& pool)
      : activation_(*unary_function(node.attributes().get<std::string>("activation"))),
        parameter_(function_parameter(node.attributes())),
        loop_(node.outputs()[0].shape, node.input(0).shape(), node.input(1).shape()),
        pool_(pool) {}

  void run(const KernelCall& call) override {
    pool_.parallel_for(loop_.elements(), kElementwiseGrain,
                       [&](std::int64_t begin, std::int64_t end) { run_range(call, begin, end); });
  }

 private:
  // Row by row, so that the sum is still in cache when the activation reads it.
  void run_range(const KernelCall& call, std::int64_t begin, std::int64_t end) const {
    const float* x = call.inputs[0].as<float>();
    const float* b = call.inputs[1].as<float>();
    float* y = call.outputs[0].as<float>();
    loop_.for_runs(begin, end, [&](std::int64_t i, std::int64_t at_x, std::int64_t at_b, auto n) {
      vector_binary(BinaryFunction::kAdd, 0, {x + at_x, loop_.a_repeats()},
                    {b + at_b, loop_.b_repeats()}, y + i, n);
      vector_unary(activation_, parameter_, y + i, y + i, n);
    });
  }

  const UnaryFunction activation_;
  const float parameter_;
  const BroadcastLoop loop_;
  ThreadPool& pool_;
};

}  // namespace

void add_cpu_elementwise_kernels(KernelTable& table) {
  for (const char* op : {"scale", "relu", "leaky_relu", "sigmoid", "tanh", "exp", "log", "sqrt",
                         "square", "abs", "sign", "erf"}) {
    table.add(op, &make_float_kernel_of<UnaryKernel>);
  }
  for (const char* op :
       {"add", "sub", "mul", "div", "bias", "relu_grad", "leaky_relu_grad", "sigmoid_grad",
        "tanh_grad", "maximum", "minimum", "pow", "greater", "greater_equal", "equal"}) {
    table.add(op, &make_float_kernel_of<BinaryKernel>);
  }
  table.add("bias_activation", &make_float_kernel_of<BiasActivationKernel>);
}

}  // namespace paceline
