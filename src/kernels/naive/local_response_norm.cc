// Local response normalisation of images (N,C,H,W) or (N,H,W,C), in double.
#include <algorithm>
#include <cmath>

#include "kernels/naive/image_view.h"
#include "kernels/naive/naive_kernels.h"

namespace paceline {

namespace {

/// The numbers of a node.
struct ResponseNorm {
  explicit ResponseNorm(const Attributes& attributes)
      : radius(attributes.get<std::int64_t>("radius")),
        bias(attributes.get<double>("bias")),
        alpha(attributes.get<double>("alpha")),
        beta(attributes.get<double>("beta")) {}

  /// Returns Σ of(channel) over the neighbours of channel c.
  template <typename F>
  double sum_around(std::int64_t c, std::int64_t channels, F&& of) const {
    double sum = 0;
    const std::int64_t end = std::min(channels, c + radius + 1);
    for (std::int64_t k = std::max<std::int64_t>(0, c - radius); k < end; ++k) sum += of(k);
    return sum;
  }
  /// Returns bias + alpha · Σ x² around channel c.
  template <typename T>
  double base(const ImageView<T>& x, std::int64_t n, std::int64_t c, std::int64_t h,
              std::int64_t w) const {
    return bias + alpha * sum_around(c, x.extents().c, [&](std::int64_t k) {
                    return double(x(n, k, h, w)) * double(x(n, k, h, w));
                  });
  }

  std::int64_t radius;
  double bias, alpha, beta;
};

template <typename T>
struct NaiveLocalResponseNorm {
  static void run(const Node& node, const KernelCall& call) {
    const bool last = channels_last(node.attributes());
    const ImageView<T> x(call.inputs[0], last), y(call.outputs[0], last);
    const ResponseNorm norm(node.attributes());
    for_each_element(x.extents(), [&](auto n, auto c, auto h, auto w) {
      y(n, c, h, w) = T(double(x(n, c, h, w)) * std::pow(norm.base(x, n, c, h, w), -norm.beta));
    });
  }
};

/// With base s, dx = dy·s^−β − 2αβ·x·Σ dy·x·s^−(β+1), where the sum covers the neighbours.
template <typename T>
struct NaiveLocalResponseNormGrad {
  static void run(const Node& node, const KernelCall& call) {
    const bool last = channels_last(node.attributes());
    const ImageView<T> dy(call.inputs[0], last), x(call.inputs[1], last), dx(call.outputs[0], last);
    const ResponseNorm norm(node.attributes());
    for_each_element(x.extents(), [&](auto n, auto c, auto h, auto w) {
      const double sum = norm.sum_around(c, x.extents().c, [&](std::int64_t k) {
        return double(dy(n, k, h, w)) * double(x(n, k, h, w)) *
               std::pow(norm.base(x, n, k, h, w), -norm.beta - 1);
      });
      const double own = double(dy(n, c, h, w)) * std::pow(norm.base(x, n, c, h, w), -norm.beta);
      dx(n, c, h, w) = T(own - 2 * norm.alpha * norm.beta * double(x(n, c, h, w)) * sum);
    });
  }
};

}  // namespace

void add_naive_local_response_norm_kernels(KernelTable& table) {
  table.add("local_response_norm", make_naive_kernel_of<NaiveLocalResponseNorm>);
  table.add("local_response_norm_grad", make_naive_kernel_of<NaiveLocalResponseNormGrad>);
}

}  // namespace paceline
