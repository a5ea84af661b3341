// Maxima and means of windows of images (N,C,H,W) or (N,H,W,C).
#include <cmath>

#include "kernels/naive/image_view.h"
#include "kernels/naive/naive_kernels.h"

namespace paceline {

namespace {

// Of equal maxima, the first counts. The maximum of a relu_max_pool2d starts at zero, without a
// place.
template <typename T>
struct NaiveMaxPool2d {
  static void run(const Node& node, const KernelCall& call) {
    const bool last = channels_last(node.attributes());
    const Window2d window = Window2d::of(node.attributes());
    const ImageView<T> x(call.inputs[0], last), y(call.outputs[0], last);
    const ImageView<std::uint8_t> places(call.outputs[1], last);
    const bool relu = node.op().name == "relu_max_pool2d";
    for_each_element(y.extents(), [&](auto n, auto c, auto h, auto w) {
      bool found = relu;
      if (relu) {
        y(n, c, h, w) = 0;
        places(n, c, h, w) = kNoPlace;
      }
      for_each_in_window(window, h, w, [&](auto i, auto j, auto row, auto column) {
        if (!x.contains(row, column)) return;
        const T value = x(n, c, row, column);
        const bool larger = value > y(n, c, h, w) || std::isnan(value);
        if (found && !larger) return;
        found = true;
        y(n, c, h, w) = value;
        places(n, c, h, w) = std::uint8_t(i * window.size[1] + j);
      });
    });
  }
};

/// Sets each element of dx to the sum of of(n, c, h, w, i, j) over the windows (h, w) that cover
/// the element. (i, j) is the place of the element in the window.
template <typename T, typename F>
void sum_over_windows(const Window2d& window, const ImageShape& pooled, const ImageView<T>& dx,
                      F&& of) {
  for_each_element(dx.extents(), [&](auto n, auto c, auto row, auto column) {
    double sum = 0;
    for (std::int64_t h = 0; h < pooled.h; ++h) {
      const std::int64_t i = row - window.begin(0, h);
      if (i < 0 || i >= window.size[0]) continue;
      for (std::int64_t w = 0; w < pooled.w; ++w) {
        const std::int64_t j = column - window.begin(1, w);
        if (j >= 0 && j < window.size[1]) sum += of(n, c, h, w, i, j);
      }
    }
    dx(n, c, row, column) = T(sum);
  });
}

template <typename T>
struct NaiveMaxPool2dGrad {
  static void run(const Node& node, const KernelCall& call) {
    const bool last = channels_last(node.attributes());
    const Window2d window = Window2d::of(node.attributes());
    const ImageView<T> dy(call.inputs[0], last), dx(call.outputs[0], last);
    const ImageView<std::uint8_t> places(call.inputs[1], last);
    sum_over_windows(window, dy.extents(), dx, [&](auto n, auto c, auto h, auto w, auto i, auto j) {
      return places(n, c, h, w) == i * window.size[1] + j ? double(dy(n, c, h, w)) : 0.0;
    });
  }
};

/// Returns the number of elements of a window that lie in the image.
std::int64_t elements_inside(const Window2d& window, const ImageShape& image, std::int64_t h,
                             std::int64_t w) {
  std::int64_t inside = 0;
  for_each_in_window(window, h, w, [&](auto, auto, auto row, auto column) {
    inside += row >= 0 && row < image.h && column >= 0 && column < image.w;
  });
  return inside;
}

template <typename T>
struct NaiveAvgPool2d {
  static void run(const Node& node, const KernelCall& call) {
    const bool last = channels_last(node.attributes());
    const Window2d window = Window2d::of(node.attributes());
    const ImageView<T> x(call.inputs[0], last), y(call.outputs[0], last);
    for_each_element(y.extents(), [&](auto n, auto c, auto h, auto w) {
      double sum = 0;
      for_each_in_window(window, h, w, [&](auto, auto, auto row, auto column) {
        if (x.contains(row, column)) sum += double(x(n, c, row, column));
      });
      y(n, c, h, w) = T(sum / double(elements_inside(window, x.extents(), h, w)));
    });
  }
};

template <typename T>
struct NaiveAvgPool2dGrad {
  static void run(const Node& node, const KernelCall& call) {
    const bool last = channels_last(node.attributes());
    const Window2d window = Window2d::of(node.attributes());
    const ImageView<T> dy(call.inputs[0], last), dx(call.outputs[0], last);
    sum_over_windows(window, dy.extents(), dx, [&](auto n, auto c, auto h, auto w, auto, auto) {
      return double(dy(n, c, h, w)) / double(elements_inside(window, dx.extents(), h, w));
    });
  }
};

}  // namespace

void add_naive_pool2d_kernels(KernelTable& table) {
  table.add("max_pool2d", make_naive_kernel_of<NaiveMaxPool2d>);
  table.add("relu_max_pool2d", make_naive_kernel_of<NaiveMaxPool2d>);
  table.add("max_pool2d_grad", make_naive_kernel_of<NaiveMaxPool2dGrad>);
  table.add("avg_pool2d", make_naive_kernel_of<NaiveAvgPool2d>);
  table.add("avg_pool2d_grad", make_naive_kernel_of<NaiveAvgPool2dGrad>);
}

}  // namespace paceline
