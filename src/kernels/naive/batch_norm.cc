// Batch normalisation of images (N,C,H,W) or (N,H,W,C), in double.
#include <array>
#include <cmath>
#include <span>

#include "kernels/naive/image_view.h"
#include "kernels/naive/naive_kernels.h"
#include "paceline/op.h"

namespace paceline {

namespace {

/// Returns Σ of(n, h, w) over one channel of an image.
template <typename F>
double sum_of_channel(const ImageShape& image, F&& of) {
  double sum = 0;
  for (std::int64_t n = 0; n < image.n; ++n)
    for (std::int64_t h = 0; h < image.h; ++h)
      for (std::int64_t w = 0; w < image.w; ++w) sum += of(n, h, w);
  return sum;
}

/// Replaces the sums by those over all parts of the batch, if there are several parts.
void add_up_parts(const KernelCall& call, std::span<double> sums) {
  if (call.exchange != nullptr) call.exchange->add_up(sums);
}

/// Maps a channel's x to y: x̂ = (x − mean)·scale, z = gain·x̂ + offset, y = z or slope·z below 0.
struct Normalizer {
  double mean, scale, gain, offset;
  double unit(double x) const { return (x - mean) * scale; }
  double operator()(double x) const { return gain * unit(x) + offset; }
};

double slope_of(const Node& node) {
  return node.attributes().has("slope") ? node.attributes().get<double>("slope") : 1;
}

template <typename T>
Normalizer normalizer(const Node& node, const KernelCall& call, std::int64_t c, double mean,
                      double variance) {
  const double scale = 1 / std::sqrt(variance + node.attributes().get<double>("epsilon"));
  return {mean, scale, double(call.inputs[1].as<T>()[c]), double(call.inputs[2].as<T>()[c])};
}

template <typename T>
void normalize_channel(const Node& node, const ImageView<T>& x, const ImageView<T>& y,
                       std::int64_t c, const Normalizer& z) {
  const double slope = slope_of(node);
  sum_of_channel(x.extents(), [&](auto n, auto h, auto w) {
    const double value = z(double(x(n, c, h, w)));
    y(n, c, h, w) = T(value < 0 ? slope * value : value);
    return 0;
  });
}

template <typename T>
struct NaiveBatchNorm {
  static void run(const Node& node, const KernelCall& call) {
    const bool last = channels_last(node.attributes());
    const ImageView<T> x(call.inputs[0], last), y(call.outputs[0], last);
    const ImageShape& image = x.extents();
    const double count = double(image.n * image.h * image.w);
    for (std::int64_t c = 0; c < image.c; ++c) {
      const auto at = [&](auto n, auto h, auto w) { return double(x(n, c, h, w)); };
      std::array<double, 2> first{sum_of_channel(image, at), count};
      add_up_parts(call, first);
      const double mean = first[0] / first[1];
      std::array<double, 1> second{sum_of_channel(image, [&](auto n, auto h, auto w) {
        return (at(n, h, w) - mean) * (at(n, h, w) - mean);
      })};
      add_up_parts(call, second);
      const double variance = second[0] / first[1];
      normalize_channel(node, x, y, c, normalizer<T>(node, call, c, mean, variance));
      call.outputs[1].as<T>()[c] = T(mean);
      call.outputs[2].as<T>()[c] = T(variance);
    }
  }
};

template <typename T>
struct NaiveBatchNormInference {
  static void run(const Node& node, const KernelCall& call) {
    const bool last = channels_last(node.attributes());
    const ImageView<T> x(call.inputs[0], last), y(call.outputs[0], last);
    for (std::int64_t c = 0; c < x.extents().c; ++c) {
      const double mean = double(call.inputs[3].as<T>()[c]);
      const double variance = double(call.inputs[4].as<T>()[c]);
      normalize_channel(node, x, y, c, normalizer<T>(node, call, c, mean, variance));
    }
  }
};

/// With x̂ = (x − mean)·scale and dz = dy, or slope·dy where z < 0 (for relu also where z = 0): dx
/// = gain·scale·(dz − mean(dz) − x̂·mean(dz·x̂)). If the statistics are given, dx = gain·scale·dz.
template <typename T>
struct NaiveBatchNormGrad {
  static void run(const Node& node, const KernelCall& call) {
    const bool last = channels_last(node.attributes());
    const bool of_batch = node.op().name != "batch_norm_inference_grad";
    const ImageView<T> dy(call.inputs[0], last), x(call.inputs[1], last), dx(call.outputs[0], last);
    const ImageShape& image = x.extents();
    const double count = double(image.n * image.h * image.w), slope = slope_of(node);
    for (std::int64_t c = 0; c < image.c; ++c) {
      const Normalizer z = normalizer_of(node, call, c);
      const auto dz = [&](auto n, auto h, auto w) {
        const double gradient = double(dy(n, c, h, w)), value = z(double(x(n, c, h, w)));
        return value < 0 || (value == 0 && slope == 0) ? slope * gradient : gradient;
      };
      const double sum = sum_of_channel(image, dz);
      const double products = sum_of_channel(image, [&](auto n, auto h, auto w) {
        return dz(n, h, w) * z.unit(double(x(n, c, h, w)));
      });
      // The loss is the mean of all parts' losses, weighted by examples.
      std::array<double, 3> all{sum * count, products * count, count};
      if (of_batch) add_up_parts(call, all);
      const double mean_sum = all[0] / all[2], mean_products = all[1] / all[2];
      sum_of_channel(image, [&](auto n, auto h, auto w) {
        const double through_statistics =
            of_batch ? (mean_sum + z.unit(double(x(n, c, h, w))) * mean_products) / count : 0;
        dx(n, c, h, w) = T(z.gain * z.scale * (dz(n, h, w) - through_statistics));
        return 0;
      });
      call.outputs[1].as<T>()[c] = T(products);
      call.outputs[2].as<T>()[c] = T(sum);
    }
  }

  // Offsets are an input only if an activation follows; otherwise no slope depends on them.
  static Normalizer normalizer_of(const Node& node, const KernelCall& call, std::int64_t c) {
    const auto channel = [&](std::size_t input) { return double(call.inputs[input].as<T>()[c]); };
    const double epsilon = node.attributes().get<double>("epsilon");
    return {channel(3), 1 / std::sqrt(channel(4) + epsilon), channel(2),
            call.inputs.size() == 6 ? channel(5) : 0};
  }
};

}  // namespace

void add_naive_batch_norm_kernels(KernelTable& table) {
  table.add("batch_norm", make_naive_kernel_of<NaiveBatchNorm>);
  table.add("batch_norm_activation", make_naive_kernel_of<NaiveBatchNorm>);
  table.add("batch_norm_inference", make_naive_kernel_of<NaiveBatchNormInference>);
  table.add("batch_norm_inference_activation", make_naive_kernel_of<NaiveBatchNormInference>);
  table.add("batch_norm_grad", make_naive_kernel_of<NaiveBatchNormGrad>);
  table.add("batch_norm_activation_grad", make_naive_kernel_of<NaiveBatchNormGrad>);
  table.add("batch_norm_inference_grad", make_naive_kernel_of<NaiveBatchNormGrad>);
}

}  // namespace paceline
