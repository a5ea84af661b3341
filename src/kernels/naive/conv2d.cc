// Convolutions of images (N,C,H,W) or (N,H,W,C) with weights (O,C/groups,height,width). Every
// element of a result is one sum, in double. If the node says so, the factors are rounded to
// bfloat16, and so is dy in the sums for the biases.
#include "kernels/naive/image_view.h"
#include "kernels/naive/naive_kernels.h"
#include "kernels/naive/rounded_factor.h"
#include "kernels/rounded_products.h"

namespace paceline {

namespace {

/// The sizes of a convolution, and the products that its results sum.
struct Convolution {
  Convolution(const Node& node, const Shape& weights, const ImageShape& x, const ImageShape& y)
      : window(Window2d::of(node.attributes())),
        x(x),
        y(y),
        channels(weights[1]),
        outputs_of_group(y.c / node.attributes().get<std::int64_t>("groups")),
        rounds(rounds_products(node)) {
    window.size = {weights[2], weights[3]};
  }

  double factor(double element) const { return rounded_factor(element, rounds); }
  /// Returns the first of the input channels that make output channel o.
  std::int64_t first_channel(std::int64_t o) const { return o / outputs_of_group * channels; }
  std::int64_t weight(std::int64_t o, std::int64_t k, std::int64_t i, std::int64_t j) const {
    return ((o * channels + k) * window.size[0] + i) * window.size[1] + j;
  }
  /// Returns the window whose element `i` along dimension d lies at `at`; −1 if there is none.
  std::int64_t window_at(int d, std::int64_t at, std::int64_t i, std::int64_t windows) const {
    const std::int64_t begin =
        at - i * window.dilations[std::size_t(d)] + window.pads[std::size_t(d)];
    const std::int64_t stride = window.strides[std::size_t(d)];
    return begin >= 0 && begin % stride == 0 && begin / stride < windows ? begin / stride : -1;
  }

  Window2d window;
  ImageShape x, y;
  std::int64_t channels, outputs_of_group;  // of x and of y, in one group
  bool rounds;
};

double activated(const Node& node, double y) {
  if (!node.attributes().has("activation") || y >= 0) return y;
  const bool relu = node.attributes().get<std::string>("activation") == "relu";
  return relu ? 0 : node.attributes().get<double>("slope") * y;
}

template <typename T>
struct NaiveConv2d {
  static void run(const Node& node, const KernelCall& call) {
    const bool last = channels_last(node.attributes());
    const ImageView<T> x(call.inputs[0], last), y(call.outputs[0], last);
    const T* weights = call.inputs[1].as<T>();
    const Convolution conv(node, call.inputs[1].shape, x.extents(), y.extents());
    for_each_element(y.extents(), [&](auto n, auto o, auto h, auto w) {
      double sum = call.inputs.size() == 3 ? double(call.inputs[2].as<T>()[o]) : 0;
      for_each_in_window(conv.window, h, w, [&](auto i, auto j, auto row, auto column) {
        if (!x.contains(row, column)) return;
        for (std::int64_t k = 0; k < conv.channels; ++k) {
          sum += conv.factor(double(weights[conv.weight(o, k, i, j)])) *
                 conv.factor(double(x(n, conv.first_channel(o) + k, row, column)));
        }
      });
      y(n, o, h, w) = T(activated(node, sum));
    });
  }
};

template <typename T>
struct NaiveConv2dInputGrad {
  static void run(const Node& node, const KernelCall& call) {
    const bool last = channels_last(node.attributes());
    const ImageView<T> dy(call.inputs[0], last), dx(call.outputs[0], last);
    const Convolution conv(node, call.inputs[1].shape, dx.extents(), dy.extents());
    for_each_element(dx.extents(), [&](auto n, auto c, auto row, auto column) {
      double sum = 0;
      for (std::int64_t i = 0; i < conv.window.size[0]; ++i) {
        const std::int64_t h = conv.window_at(0, row, i, dy.extents().h);
        for (std::int64_t j = 0; j < conv.window.size[1] && h >= 0; ++j) {
          const std::int64_t w = conv.window_at(1, column, j, dy.extents().w);
          if (w >= 0) sum += of_outputs(conv, dy, call.inputs[1].as<T>(), n, c, h, w, i, j);
        }
      }
      dx(n, c, row, column) = T(sum);
    });
  }

  /// Returns the sum of weights times dy over the output channels that read channel c, for the
  /// element (i, j) of the weights.
  static double of_outputs(const Convolution& conv, const ImageView<T>& dy, const T* weights,
                           std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w,
                           std::int64_t i, std::int64_t j) {
    const std::int64_t first = c / conv.channels * conv.outputs_of_group;
    double sum = 0;
    for (std::int64_t o = first; o < first + conv.outputs_of_group; ++o) {
      sum += conv.factor(double(weights[conv.weight(o, c % conv.channels, i, j)])) *
             conv.factor(double(dy(n, o, h, w)));
    }
    return sum;
  }
};

template <typename T>
struct NaiveConv2dWeightsGrad {
  static void run(const Node& node, const KernelCall& call) {
    const bool last = channels_last(node.attributes());
    const ImageView<T> x(call.inputs[0], last), dy(call.inputs[1], last);
    const Convolution conv(node, call.outputs[0].shape, x.extents(), dy.extents());
    for (std::int64_t o = 0; o < dy.extents().c; ++o) {
      for (std::int64_t k = 0; k < conv.channels; ++k)
        for (std::int64_t i = 0; i < conv.window.size[0]; ++i)
          for (std::int64_t j = 0; j < conv.window.size[1]; ++j)
            call.outputs[0].as<T>()[conv.weight(o, k, i, j)] =
                T(of_windows(conv, x, dy, o, k, i, j));
      if (call.outputs.size() == 2) call.outputs[1].as<T>()[o] = T(sum_of(conv, dy, o));
    }
  }

  /// Returns the sum over all windows of dy, in channel o, times the element (k, i, j) of the
  /// window.
  static double of_windows(const Convolution& conv, const ImageView<T>& x, const ImageView<T>& dy,
                           std::int64_t o, std::int64_t k, std::int64_t i, std::int64_t j) {
    double sum = 0;
    for (std::int64_t n = 0; n < conv.y.n; ++n)
      for (std::int64_t h = 0; h < conv.y.h; ++h)
        for (std::int64_t w = 0; w < conv.y.w; ++w) {
          const std::int64_t row = conv.window.begin(0, h) + i * conv.window.dilations[0];
          const std::int64_t column = conv.window.begin(1, w) + j * conv.window.dilations[1];
          if (!x.contains(row, column)) continue;
          sum += conv.factor(double(dy(n, o, h, w))) *
                 conv.factor(double(x(n, conv.first_channel(o) + k, row, column)));
        }
    return sum;
  }

  static double sum_of(const Convolution& conv, const ImageView<T>& dy, std::int64_t o) {
    double sum = 0;
    for (std::int64_t n = 0; n < dy.extents().n; ++n)
      for (std::int64_t h = 0; h < dy.extents().h; ++h)
        for (std::int64_t w = 0; w < dy.extents().w; ++w)
          sum += conv.factor(double(dy(n, o, h, w)));
    return sum;
  }
};

}  // namespace

void add_naive_conv2d_kernels(KernelTable& table) {
  table.add("conv2d", make_naive_kernel_of<NaiveConv2d>);
  table.add("conv2d_activation", make_naive_kernel_of<NaiveConv2d>);
  table.add("conv2d_input_grad", make_naive_kernel_of<NaiveConv2dInputGrad>);
  table.add("conv2d_weights_grad", make_naive_kernel_of<NaiveConv2dWeightsGrad>);
}

}  // namespace paceline
