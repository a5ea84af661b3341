// Ops on the rows of the last dimension: softmax and layer norm, with their gradients, in double.
#include <algorithm>
#include <cmath>

#include "kernels/naive/naive_kernels.h"
#include "kernels/ranking.h"
#include "paceline/op.h"

namespace paceline {

namespace {

template <typename T>
struct NaiveSoftmax {
  static void run(const Node&, const KernelCall& call) {
    const std::int64_t n = call.outputs[0].shape[-1];
    const std::int64_t rows = call.outputs[0].shape.elements() / n;
    for (std::int64_t r = 0; r < rows; ++r) {
      const T* x = call.inputs[0].as<T>() + r * n;
      T* y = call.outputs[0].as<T>() + r * n;
      T largest = x[0];
      for (std::int64_t i = 1; i < n; ++i) largest = larger(largest, x[i]);
      double sum = 0;
      for (std::int64_t i = 0; i < n; ++i) sum += std::exp(double(x[i]) - double(largest));
      for (std::int64_t i = 0; i < n; ++i) y[i] = T(std::exp(double(x[i]) - double(largest)) / sum);
    }
  }
};

/// dx = y·(dy − Σ dy·y).
template <typename T>
struct NaiveSoftmaxGrad {
  static void run(const Node&, const KernelCall& call) {
    const std::int64_t n = call.outputs[0].shape[-1];
    const std::int64_t rows = n == 0 ? 0 : call.outputs[0].shape.elements() / n;
    for (std::int64_t r = 0; r < rows; ++r) {
      const T* dy = call.inputs[0].as<T>() + r * n;
      const T* y = call.inputs[1].as<T>() + r * n;
      T* dx = call.outputs[0].as<T>() + r * n;
      double sum = 0;
      for (std::int64_t i = 0; i < n; ++i) sum += double(dy[i]) * double(y[i]);
      for (std::int64_t i = 0; i < n; ++i) dx[i] = T(double(y[i]) * (double(dy[i]) - sum));
    }
  }
};

template <typename T>
struct NaiveLayerNorm {
  static void run(const Node& node, const KernelCall& call) {
    const double epsilon = node.attributes().get<double>("epsilon");
    const std::int64_t n = call.outputs[0].shape[-1];
    const T *gains = call.inputs[1].as<T>(), *offsets = call.inputs[2].as<T>();
    for (std::int64_t r = 0; r < call.outputs[1].shape.elements(); ++r) {
      const T* x = call.inputs[0].as<T>() + r * n;
      T* y = call.outputs[0].as<T>() + r * n;
      double sum = 0, squares = 0;
      for (std::int64_t i = 0; i < n; ++i) sum += double(x[i]);
      const double mean = sum / double(n);
      for (std::int64_t i = 0; i < n; ++i) squares += (double(x[i]) - mean) * (double(x[i]) - mean);
      const double scale = 1 / std::sqrt(squares / double(n) + epsilon);
      for (std::int64_t i = 0; i < n; ++i) {
        y[i] = T((double(x[i]) - mean) * scale * double(gains[i]) + double(offsets[i]));
      }
      call.outputs[1].as<T>()[r] = T(mean);
      call.outputs[2].as<T>()[r] = T(scale);
    }
  }
};

/// With x̂ = (x − mean)·scale and g = gains·dy: dx = scale·(g − mean(g) − x̂·mean(g·x̂)).
template <typename T>
class NaiveLayerNormGrad : public Kernel {
 public:
  NaiveLayerNormGrad(const Node& node, ThreadPool&)
      : n_(node.outputs()[1].shape[0]), rows_(node.input(3).shape().elements()) {}
  std::size_t scratch_bytes() const override { return std::size_t(2 * n_) * sizeof(double); }
  void run(const KernelCall& call) override {
    double* sums = reinterpret_cast<double*>(call.scratch.data());
    std::fill_n(sums, 2 * n_, 0.0);
    for (std::int64_t r = 0; r < rows_; ++r) row(call, r, sums, sums + n_);
    for (std::int64_t i = 0; i < n_; ++i) {
      call.outputs[1].as<T>()[i] = T(sums[i]);
      call.outputs[2].as<T>()[i] = T(sums[n_ + i]);
    }
  }

 private:
  void row(const KernelCall& call, std::int64_t r, double* of_gains, double* of_offsets) const {
    const T *dy = call.inputs[0].as<T>() + r * n_, *x = call.inputs[1].as<T>() + r * n_;
    const T* gains = call.inputs[2].as<T>();
    const double mean = double(call.inputs[3].as<T>()[r]);
    const double scale = double(call.inputs[4].as<T>()[r]);
    double sum = 0, products = 0;
    for (std::int64_t i = 0; i < n_; ++i) {
      const double unit = (double(x[i]) - mean) * scale, g = double(gains[i]) * double(dy[i]);
      sum += g;
      products += g * unit;
      of_gains[i] += double(dy[i]) * unit;
      of_offsets[i] += double(dy[i]);
    }
    for (std::int64_t i = 0; i < n_; ++i) {
      const double unit = (double(x[i]) - mean) * scale, g = double(gains[i]) * double(dy[i]);
      call.outputs[0].as<T>()[r * n_ + i] =
          T(scale * (g - sum / double(n_) - unit * products / double(n_)));
    }
  }

  const std::int64_t n_, rows_;
};

std::unique_ptr<Kernel> make_layer_norm_grad(const Node& node, ThreadPool& pool) {
  const bool wide = node.outputs()[0].dtype == DType::kFloat64;
  if (wide) return std::make_unique<NaiveLayerNormGrad<double>>(node, pool);
  return std::make_unique<NaiveLayerNormGrad<float>>(node, pool);
}

}  // namespace

void add_naive_row_kernels(KernelTable& table) {
  table.add("softmax", make_naive_kernel_of<NaiveSoftmax>);
  table.add("softmax_grad", make_naive_kernel_of<NaiveSoftmaxGrad>);
  table.add("layer_norm", make_naive_kernel_of<NaiveLayerNorm>);
  table.add("layer_norm_grad", make_layer_norm_grad);
}

}  // namespace paceline
