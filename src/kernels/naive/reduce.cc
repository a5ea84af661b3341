// Reductions: y (kept dimensions) of x (…), summed in double.
#include <algorithm>
#include <limits>

#include "kernels/naive/naive_kernels.h"
#include "kernels/ranking.h"
#include "ops/reduced_shape.h"
#include "paceline/op.h"

namespace paceline {

namespace {

/// Finds the output that each input element belongs to.
class Groups {
 public:
  Groups(const Node& node, const Shape& x)
      : x_(x), reduced_(reduced_axes(node.attributes(), x.rank())) {}

  std::int64_t elements() const { return x_.elements(); }
  std::int64_t output_of(std::int64_t i) const {
    std::int64_t position = 0, stride = 1;
    for (int d = x_.rank() - 1; d >= 0; --d) {
      if (!reduced_[std::size_t(d)]) {
        position += i % x_[d] * stride;
        stride *= x_[d];
      }
      i /= x_[d];
    }
    return position;
  }

 private:
  const Shape x_;
  const std::vector<bool> reduced_;
};

/// Sum and mean, with an accumulator for each output in scratch memory.
template <typename T>
class SumKernel : public Kernel {
 public:
  SumKernel(const Node& node, ThreadPool&)
      : groups_(node, node.input(0).shape()), outputs_(node.outputs()[0].shape.elements()) {
    if (node.op().name == "reduce_mean" && outputs_ > 0) {
      factor_ = double(outputs_) / double(groups_.elements());
    }
  }
  std::size_t scratch_bytes() const override { return std::size_t(outputs_) * sizeof(double); }
  void run(const KernelCall& call) override {
    double* sums = reinterpret_cast<double*>(call.scratch.data());
    std::fill_n(sums, outputs_, 0.0);
    for (std::int64_t i = 0; i < groups_.elements(); ++i) {
      sums[groups_.output_of(i)] += double(call.inputs[0].as<T>()[i]);
    }
    for (std::int64_t j = 0; j < outputs_; ++j) call.outputs[0].as<T>()[j] = T(sums[j] * factor_);
  }

 private:
  const Groups groups_;
  const std::int64_t outputs_;
  double factor_ = 1;
};

template <typename T>
class MaxKernel : public Kernel {
 public:
  MaxKernel(const Node& node, ThreadPool&) : groups_(node, node.input(0).shape()) {}
  void run(const KernelCall& call) override {
    T* y = call.outputs[0].as<T>();
    std::fill_n(y, call.outputs[0].shape.elements(), -std::numeric_limits<T>::infinity());
    for (std::int64_t i = 0; i < groups_.elements(); ++i) {
      T& most = y[groups_.output_of(i)];
      most = larger(most, call.inputs[0].as<T>()[i]);
    }
  }

 private:
  const Groups groups_;
};

/// Computes dx from dy and y (kept dimensions) and x (…). Equal maxima share the gradient evenly.
template <typename T>
class MaxGradientKernel : public Kernel {
 public:
  MaxGradientKernel(const Node& node, ThreadPool&)
      : groups_(node, node.input(1).shape()), outputs_(node.input(2).shape().elements()) {}
  std::size_t scratch_bytes() const override {
    return std::size_t(outputs_) * sizeof(std::int64_t);
  }
  void run(const KernelCall& call) override {
    const T* dy = call.inputs[0].as<T>();
    const T* x = call.inputs[1].as<T>();
    const T* y = call.inputs[2].as<T>();
    std::int64_t* equals = reinterpret_cast<std::int64_t*>(call.scratch.data());
    std::fill_n(equals, outputs_, 0);
    for (std::int64_t i = 0; i < groups_.elements(); ++i) {
      const std::int64_t j = groups_.output_of(i);
      equals[j] += x[i] == y[j];
    }
    for (std::int64_t i = 0; i < groups_.elements(); ++i) {
      const std::int64_t j = groups_.output_of(i);
      call.outputs[0].as<T>()[i] = x[i] == y[j] ? dy[j] / T(equals[j]) : T(0);
    }
  }

 private:
  const Groups groups_;
  const std::int64_t outputs_;
};

template <template <typename> class K>
std::unique_ptr<Kernel> make(const Node& node, ThreadPool& pool) {
  switch (node.outputs()[0].dtype) {
    case DType::kFloat32:
      return std::make_unique<K<float>>(node, pool);
    case DType::kFloat64:
      return std::make_unique<K<double>>(node, pool);
    default:
      return nullptr;
  }
}

}  // namespace

void add_naive_reduce_kernels(KernelTable& table) {
  table.add("reduce_sum", &make<SumKernel>);
  table.add("reduce_mean", &make<SumKernel>);
  table.add("reduce_max", &make<MaxKernel>);
  table.add("reduce_max_grad", &make<MaxGradientKernel>);
}

}  // namespace paceline
