#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/index_check.h"
#include "kernels/naive/naive_kernels.h"
#include "ops/label_smoothing.h"

namespace paceline {

namespace {

/// Returns Σ p·x over the classes, where p are the wanted probabilities.
template <typename T>
double wanted_logit(const T* x, std::int64_t classes, std::int32_t label,
                    const WantedProbabilities& p) {
  double sum = p.of_label * double(x[label]);
  for (std::int64_t j = 0; j < classes; ++j) sum += p.of_each * double(x[j]);
  return sum;
}

std::span<const std::int32_t> labels_of(const TensorView& view) {
  return {view.as<std::int32_t>(), std::size_t(view.shape.elements())};
}

template <typename T>
struct NaiveSoftmaxCrossEntropy {
  static void run(const Node& node, const KernelCall& call) {
    const std::int64_t rows = call.inputs[0].shape[0], classes = call.inputs[0].shape[1];
    const auto labels = labels_of(call.inputs[1]);
    check_indices(node, "label", labels, classes);
    const auto wanted = WantedProbabilities::of(node.attributes(), classes);
    for (std::int64_t r = 0; r < rows; ++r) {
      const T* x = call.inputs[0].as<T>() + r * classes;
      // Subtracting the largest logit keeps every exponential from overflowing.
      const double largest = *std::max_element(x, x + classes);
      double sum = 0;
      for (std::int64_t j = 0; j < classes; ++j) sum += std::exp(double(x[j]) - largest);
      const double log_sum = largest + std::log(sum);
      const double logit = wanted_logit(x, classes, labels[std::size_t(r)], wanted);
      call.outputs[0].as<T>()[r] = T(log_sum - logit);
      call.outputs[1].as<T>()[r] = T(log_sum);
    }
  }
};

template <typename T>
struct NaiveSoftmaxCrossEntropyGrad {
  static void run(const Node& node, const KernelCall& call) {
    const std::int64_t rows = call.inputs[0].shape[0], classes = call.inputs[0].shape[1];
    const auto labels = labels_of(call.inputs[1]);
    check_indices(node, "label", labels, classes);
    const auto p = WantedProbabilities::of(node.attributes(), classes);
    for (std::int64_t r = 0; r < rows; ++r) {
      const T log_sum = call.inputs[2].as<T>()[r], gradient = call.inputs[3].as<T>()[r];
      for (std::int64_t j = 0; j < classes; ++j) {
        const T probability = std::exp(call.inputs[0].as<T>()[r * classes + j] - log_sum);
        const T wanted = T(p.of_each + (j == labels[std::size_t(r)] ? p.of_label : 0));
        call.outputs[0].as<T>()[r * classes + j] = (probability - wanted) * gradient;
      }
    }
  }
};

template <typename T>
struct NaiveSoftmaxCrossEntropyWithGrad {
  static void run(const Node& node, const KernelCall& call) {
    const std::int64_t rows = call.inputs[0].shape[0], classes = call.inputs[0].shape[1];
    const auto labels = labels_of(call.inputs[1]);
    check_indices(node, "label", labels, classes);
    const bool biased = call.inputs.size() == 4;
    const auto wanted = WantedProbabilities::of(node.attributes(), classes);
    std::vector<double> x(std::size_t(classes), 0), sums(std::size_t(classes), 0);
    for (std::int64_t r = 0; r < rows; ++r) {
      double sum = 0;
      for (std::size_t j = 0; j < x.size(); ++j) {
        x[j] = call.inputs[0].as<T>()[r * classes + std::int64_t(j)];
        if (biased) x[j] += call.inputs[3].as<T>()[j];
      }
      const double largest = *std::ranges::max_element(x);
      for (const double value : x) sum += std::exp(value - largest);
      const std::size_t label = std::size_t(labels[std::size_t(r)]);
      const double logit = wanted_logit(x.data(), classes, labels[std::size_t(r)], wanted);
      call.outputs[1].as<T>()[r] = T(largest + std::log(sum) - logit);
      for (std::size_t j = 0; j < x.size(); ++j) {
        const double probability = std::exp(x[j] - largest) / sum;
        const double p = wanted.of_each + (j == label ? wanted.of_label : 0);
        const double gradient = (probability - p) * double(call.inputs[2].as<T>()[r]);
        call.outputs[0].as<T>()[r * classes + std::int64_t(j)] = T(gradient);
        sums[j] += gradient;
      }
    }
    if (biased) std::ranges::copy(sums, call.outputs[2].as<T>());
  }
};

template <typename T>
struct NaiveMeanSquaredError {
  static void run(const Node&, const KernelCall& call) {
    const std::int64_t n = call.inputs[0].shape.elements();
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const double difference = double(call.inputs[0].as<T>()[i]) - call.inputs[1].as<T>()[i];
      sum += difference * difference;
    }
    call.outputs[0].as<T>()[0] = T(sum / double(n));
  }
};

template <typename T>
struct NaiveMeanSquaredErrorGrad {
  static void run(const Node&, const KernelCall& call) {
    const std::int64_t n = call.inputs[0].shape.elements();
    const T factor = call.inputs[2].as<T>()[0] * T(2) / T(n);
    for (std::int64_t i = 0; i < n; ++i) {
      call.outputs[0].as<T>()[i] = factor * (call.inputs[0].as<T>()[i] - call.inputs[1].as<T>()[i]);
    }
  }
};

}  // namespace

void add_naive_loss_kernels(KernelTable& table) {
  table.add("softmax_cross_entropy", make_naive_kernel_of<NaiveSoftmaxCrossEntropy>);
  table.add("softmax_cross_entropy_grad", make_naive_kernel_of<NaiveSoftmaxCrossEntropyGrad>);
  table.add("softmax_cross_entropy_with_grad",
            make_naive_kernel_of<NaiveSoftmaxCrossEntropyWithGrad>);
  table.add("mean_squared_error", make_naive_kernel_of<NaiveMeanSquaredError>);
  table.add("mean_squared_error_grad", make_naive_kernel_of<NaiveMeanSquaredErrorGrad>);
}

}  // namespace paceline
