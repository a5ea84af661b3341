// Element-wise ops in float32: y (…) = f(x (…)); z = f(a, b) with broadcasting; and y (…,n) = f(x
// (…,n) + b (n)).
#include <algorithm>
#include <array>
#include <cstdint>

#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/grains.h"
#include "kernels/cpu/vector_math.h"
#include "paceline/op.h"
#include "paceline/tensor.h"

namespace paceline {
namespace {

// Walks two operands under NumPy broadcasting in runs of contiguous output.

/// Joins dimensions that are contiguous in both operands, or repeat in both: operands of equal
/// shape become a single run.
class BroadcastLoop {
 public:
  BroadcastLoop(const Shape& out, const Shape& a, const Shape& b);

  std::int64_t elements() const { return elements_; }
  /// True if a run repeats one element of the operand; false if it takes consecutive elements.
  bool a_repeats() const { return a_strides_[last()] == 0; }
  bool b_repeats() const { return b_strides_[last()] == 0; }

  /// Calls f(position, offset in a, offset in b, n) for the runs that make up [begin, end).
  template <typename F>
  void for_runs(std::int64_t begin, std::int64_t end, F&& f) const {
    const std::int64_t run = dims_[last()];
    for (std::int64_t i = begin; i < end;) {
      const std::int64_t within = i % run;
      const std::int64_t n = std::min(run - within, end - i);
      std::int64_t a = within * a_strides_[last()], b = within * b_strides_[last()];
      std::int64_t rest = i / run;
      for (std::size_t d = last(); d-- > 0;) {
        const std::int64_t index = rest % dims_[d];
        rest /= dims_[d];
        a += index * a_strides_[d];
        b += index * b_strides_[d];
      }
      f(i, a, b, n);
      i += n;
    }
  }

 private:
  using Numbers = std::array<std::int64_t, Shape::kMaxRank + 1>;
  std::size_t last() const { return rank_ - 1; }
  void add_dim(std::int64_t size, std::int64_t a_stride, std::int64_t b_stride);

  std::int64_t elements_;
  std::size_t rank_ = 0;
  Numbers dims_{}, a_strides_{}, b_strides_{};
};

/// Returns the stride of `shape` for the output's dimension `from_last`; 0 if it repeats.
std::int64_t stride_of(const Shape& shape, int from_last) {
  if (from_last > shape.rank() || shape[-from_last] == 1) return 0;
  std::int64_t stride = 1;
  for (int i = 1; i < from_last; ++i) stride *= shape[-i];
  return stride;
}

BroadcastLoop::BroadcastLoop(const Shape& out, const Shape& a, const Shape& b)
    : elements_(out.elements()) {
  for (int d = out.rank(); d >= 1; --d) {
    if (out[-d] != 1) add_dim(out[-d], stride_of(a, d), stride_of(b, d));
  }
  if (rank_ == 0) add_dim(1, 1, 1);
}

void BroadcastLoop::add_dim(std::int64_t size, std::int64_t a_stride, std::int64_t b_stride) {
  const bool joins =
      rank_ > 0 && a_strides_[last()] == a_stride * size && b_strides_[last()] == b_stride * size;
  if (!joins) ++rank_;
  dims_[last()] = joins ? dims_[last()] * size : size;
  a_strides_[last()] = a_stride;
  b_strides_[last()] = b_stride;
}

class UnaryKernel : public Kernel {
 public:
  UnaryKernel(const Node& node, ThreadPool& pool)
      : function_(*unary_function(node.op().name)),
        parameter_(function_parameter(node.attributes())),
        pool_(pool) {}

  void run(const KernelCall& call) override {
    const float* x = call.inputs[0].as<float>();
    float* y = call.outputs[0].as<float>();
    pool_.parallel_for(call.outputs[0].shape.elements(), kElementsGrain,
                       [&](std::int64_t begin, std::int64_t end) {
                         vector_unary(function_, parameter_, x + begin, y + begin, end - begin);
                       });
  }

 private:
  const UnaryFunction function_;
  const float parameter_;
  ThreadPool& pool_;
};

/// Handles `bias` too, which is add with a row.
class BinaryKernel : public Kernel {
 public:
  BinaryKernel(const Node& node, ThreadPool& pool)
      : function_(binary_function(node.op().name).value_or(BinaryFunction::kAdd)),
        parameter_(function_parameter(node.attributes())),
        loop_(node.outputs()[0].shape, node.input(0).shape(), node.input(1).shape()),
        pool_(pool) {}

  void run(const KernelCall& call) override {
    pool_.parallel_for(loop_.elements(), kElementsGrain,
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
    pool_.parallel_for(loop_.elements(), kElementsGrain,
                       [&](std::int64_t begin, std::int64_t end) { run_range(call, begin, end); });
  }

 private:
  // Works run by run, so that the sums are still in the cache when the activation reads them.
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
