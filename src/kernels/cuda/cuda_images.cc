// Convolutions, pools and local response norm of images (N,C,H,W) or (N,H,W,C): each thread
// computes elements one by one.
#include <algorithm>
#include <array>
#include <utility>

#include "kernels/cuda/cuda_work.h"
#include "kernels/rounded_products.h"
#include "paceline/op.h"

namespace paceline::cuda {
namespace {

const char* const kImageKernelsSource = R"(
struct Place {
  i64 n, c, h, w;
  // Finds the place of element i, counted in memory order.
  __device__ Place(i64 i, const Image& image) {
    const bool last = image.of_c == 1 && image.of_w == image.c;
    if (last) {
      c = i % image.c;
      i /= image.c;
    }
    w = i % image.w;
    i /= image.w;
    h = i % image.h;
    i /= image.h;
    if (!last) {
      c = i % image.c;
      i /= image.c;
    }
    n = i;
  }
};
struct Window {
  i64 size[2], strides[2], dilations[2], pads[4];
  __device__ i64 begin(int d, i64 index) const { return index * strides[d] - pads[d]; }
  // The window whose element `i` along d lies at `at`; -1 where there is none.
  __device__ i64 window_at(int d, i64 at, i64 i, i64 windows) const {
    const i64 begin = at - i * dilations[d] + pads[d];
    return begin >= 0 && begin % strides[d] == 0 && begin / strides[d] < windows
               ? begin / strides[d]
               : -1;
  }
};

extern "C" __global__ void max_pool(float* y, unsigned char* places, const float* x, Image ys,
                                    Image xs, Window window, i64 relu) {
  EACH(e, ys.elements()) {
    const Place at(e, ys);
    bool found = relu;
    float most = 0;
    int place = 255;
    for (i64 i = 0; i < window.size[0]; ++i) {
      for (i64 j = 0; j < window.size[1]; ++j) {
        const i64 row = window.begin(0, at.h) + i * window.dilations[0];
        const i64 column = window.begin(1, at.w) + j * window.dilations[1];
        if (!xs.has(row, column)) continue;
        const float value = x[xs.at(at.n, at.c, row, column)];
        if (found && !(value > most || value != value)) continue;
        found = true;
        most = value;
        place = (int)(i * window.size[1] + j);
      }
    }
    const i64 to = ys.at(at.n, at.c, at.h, at.w);
    y[to] = most;
    places[to] = (unsigned char)place;
  }
}
__device__ inline i64 elements_inside(const Image& xs, const Window& window, i64 h, i64 w) {
  i64 inside = 0;
  for (i64 i = 0; i < window.size[0]; ++i) {
    for (i64 j = 0; j < window.size[1]; ++j) {
      inside += xs.has(window.begin(0, h) + i * window.dilations[0],
                       window.begin(1, w) + j * window.dilations[1]);
    }
  }
  return inside;
}
extern "C" __global__ void avg_pool(float* y, const float* x, Image ys, Image xs, Window window) {
  EACH(e, ys.elements()) {
    const Place at(e, ys);
    double sum = 0;
    for (i64 i = 0; i < window.size[0]; ++i) {
      for (i64 j = 0; j < window.size[1]; ++j) {
        const i64 row = window.begin(0, at.h) + i * window.dilations[0];
        const i64 column = window.begin(1, at.w) + j * window.dilations[1];
        if (xs.has(row, column)) sum += x[xs.at(at.n, at.c, row, column)];
      }
    }
    y[ys.at(at.n, at.c, at.h, at.w)] = (float)(sum / elements_inside(xs, window, at.h, at.w));
  }
}
// `places` says which element of a window was its maximum; it is null for a mean.
extern "C" __global__ void pool_grad(float* dx, const float* dy, const unsigned char* places,
                                     Image xs, Image ys, Window window) {
  EACH(e, xs.elements()) {
    const Place at(e, xs);
    double sum = 0;
    for (i64 i = 0; i < window.size[0]; ++i) {
      const i64 h = window.window_at(0, at.h, i, ys.h);
      for (i64 j = 0; j < window.size[1] && h >= 0; ++j) {
        const i64 w = window.window_at(1, at.w, j, ys.w);
        if (w < 0) continue;
        const i64 from = ys.at(at.n, at.c, h, w);
        if (!places) {
          sum += (double)dy[from] / elements_inside(xs, window, h, w);
        } else if (places[from] == i * window.size[1] + j) {
          sum += dy[from];
        }
      }
    }
    dx[xs.at(at.n, at.c, at.h, at.w)] = (float)sum;
  }
}

// bias + alpha * the sum of squares around a channel.
__device__ inline double base_of(const float* x, const Image& xs, const Place& at, i64 channel,
                                 i64 radius, double bias, double alpha) {
  double sum = 0;
  for (i64 k = channel - radius; k <= channel + radius; ++k) {
    if (k < 0 || k >= xs.c) continue;
    const double value = x[xs.at(at.n, k, at.h, at.w)];
    sum += value * value;
  }
  return bias + alpha * sum;
}
extern "C" __global__ void response_norm(float* y, const float* x, Image xs, i64 radius,
                                         double bias, double alpha, double beta) {
  EACH(e, xs.elements()) {
    const Place at(e, xs);
    const i64 own = xs.at(at.n, at.c, at.h, at.w);
    y[own] = (float)(x[own] * pow(base_of(x, xs, at, at.c, radius, bias, alpha), -beta));
  }
}
extern "C" __global__ void response_norm_grad(float* dx, const float* dy, const float* x, Image xs,
                                              i64 radius, double bias, double alpha, double beta) {
  EACH(e, xs.elements()) {
    const Place at(e, xs);
    const i64 own = xs.at(at.n, at.c, at.h, at.w);
    double sum = 0;
    for (i64 k = at.c - radius; k <= at.c + radius; ++k) {
      if (k < 0 || k >= xs.c) continue;
      const i64 other = xs.at(at.n, k, at.h, at.w);
      sum += (double)dy[other] * x[other] *
             pow(base_of(x, xs, at, k, radius, bias, alpha), -beta - 1);
    }
    const double through = dy[own] * pow(base_of(x, xs, at, at.c, radius, bias, alpha), -beta);
    dx[own] = (float)(through - 2 * alpha * beta * x[own] * sum);
  }
}

// Weights lie as (outputs, channels of a group, height, width).
struct Convolution {
  Image xs, ys;
  Window window;
  i64 channels, outputs_of_group;
  __device__ i64 first_channel(i64 o) const { return o / outputs_of_group * channels; }
  __device__ i64 weight(i64 o, i64 k, i64 i, i64 j) const {
    return ((o * channels + k) * window.size[0] + i) * window.size[1] + j;
  }
};
// To the nearest bfloat16.
extern "C" __global__ void rounded(float* to, const float* from, i64 n) {
  EACH(i, n) {
    const unsigned word = __float_as_uint(from[i]);
    to[i] = from[i] != from[i]
                ? from[i]
                : __uint_as_float((word + 0x7fff + ((word >> 16) & 1)) & 0xffff0000u);
  }
}
extern "C" __global__ void conv2d(float* y, const float* x, const float* weights,
                                  Convolution conv) {
  EACH(e, conv.ys.elements()) {
    const Place at(e, conv.ys);
    double sum = 0;
    for (i64 i = 0; i < conv.window.size[0]; ++i) {
      for (i64 j = 0; j < conv.window.size[1]; ++j) {
        const i64 row = conv.window.begin(0, at.h) + i * conv.window.dilations[0];
        const i64 column = conv.window.begin(1, at.w) + j * conv.window.dilations[1];
        if (!conv.xs.has(row, column)) continue;
        const float* w = weights + conv.weight(at.c, 0, i, j);
        const float* from = x + conv.xs.at(at.n, conv.first_channel(at.c), row, column);
        const i64 taps = conv.window.size[0] * conv.window.size[1];
        for (i64 k = 0; k < conv.channels; ++k, w += taps, from += conv.xs.of_c) {
          sum += (double)*w * *from;
        }
      }
    }
    y[conv.ys.at(at.n, at.c, at.h, at.w)] = (float)sum;
  }
}
// Values below 0 are multiplied by the slope.
extern "C" __global__ void activate(float* y, const float* biases, Image ys, float slope) {
  EACH(e, ys.elements()) {
    const Place at(e, ys);
    float& value = y[ys.at(at.n, at.c, at.h, at.w)];
    const float sum = biases ? value + biases[at.c] : value;
    value = sum < 0 ? slope == 0 ? 0 : slope * sum : sum;
  }
}
extern "C" __global__ void conv2d_input_grad(float* dx, const float* dy, const float* weights,
                                             Convolution conv) {
  EACH(e, conv.xs.elements()) {
    const Place at(e, conv.xs);
    const i64 first = at.c / conv.channels * conv.outputs_of_group;
    double sum = 0;
    for (i64 i = 0; i < conv.window.size[0]; ++i) {
      const i64 h = conv.window.window_at(0, at.h, i, conv.ys.h);
      for (i64 j = 0; j < conv.window.size[1] && h >= 0; ++j) {
        const i64 w = conv.window.window_at(1, at.w, j, conv.ys.w);
        if (w < 0) continue;
        for (i64 o = first; o < first + conv.outputs_of_group; ++o) {
          sum += (double)weights[conv.weight(o, at.c % conv.channels, i, j)] *
                 dy[conv.ys.at(at.n, o, h, w)];
        }
      }
    }
    dx[conv.xs.at(at.n, at.c, at.h, at.w)] = (float)sum;
  }
}
// A thread sums a part of the windows for a weight's gradient.
extern "C" __global__ void conv2d_weights_parts(double* sums, const float* x, const float* dy,
                                                Convolution conv, i64 parts) {
  const Image& ys = conv.ys;
  const i64 taps = conv.window.size[0] * conv.window.size[1];
  const i64 weights = ys.c * conv.channels * taps, windows = ys.n * ys.h * ys.w;
  EACH(t, weights * parts) {
    const i64 part = t / weights, b = t % weights;
    const i64 o = b / (conv.channels * taps), k = b / taps % conv.channels;
    const i64 i = b % taps / conv.window.size[1], j = b % conv.window.size[1];
    double sum = 0;
    for (i64 e = windows * part / parts; e < windows * (part + 1) / parts; ++e) {
      const i64 w = e % ys.w, h = e / ys.w % ys.h, n = e / (ys.w * ys.h);
      const i64 row = conv.window.begin(0, h) + i * conv.window.dilations[0];
      const i64 column = conv.window.begin(1, w) + j * conv.window.dilations[1];
      if (!conv.xs.has(row, column)) continue;
      sum += (double)dy[ys.at(n, o, h, w)] *
             x[conv.xs.at(n, conv.first_channel(o) + k, row, column)];
    }
    sums[t] = sum;
  }
}
// The same for a bias's gradient.
extern "C" __global__ void conv2d_biases_parts(double* sums, const float* dy, Convolution conv,
                                               i64 parts) {
  const Image& ys = conv.ys;
  const i64 windows = ys.n * ys.h * ys.w;
  EACH(t, ys.c * parts) {
    const i64 part = t / ys.c, o = t % ys.c;
    double sum = 0;
    for (i64 e = windows * part / parts; e < windows * (part + 1) / parts; ++e) {
      const i64 w = e % ys.w, h = e / ys.w % ys.h, n = e / (ys.w * ys.h);
      sum += dy[ys.at(n, o, h, w)];
    }
    sums[t] = sum;
  }
}
)";

using A = CudaArgument;

/// Matches the struct in the kernel source.
struct Window {
  std::int64_t size[2], strides[2], dilations[2], pads[4];

  static Window of(const Window2d& from) {
    Window window{};
    std::ranges::copy(from.size, window.size);
    std::ranges::copy(from.strides, window.strides);
    std::ranges::copy(from.dilations, window.dilations);
    std::ranges::copy(from.pads, window.pads);
    return window;
  }
};
struct Convolution {
  Image xs, ys;
  Window window;
  std::int64_t channels, outputs_of_group;

  static Convolution of(const Node& node, const Shape& x, const Shape& weights, const Shape& y) {
    Window2d window = Window2d::of(node.attributes());
    window.size = {weights[2], weights[3]};
    const Image ys = image_of(y, node.attributes());
    return {image_of(x, node.attributes()), ys, Window::of(window), weights[1],
            ys.c / node.attributes().get<std::int64_t>("groups")};
  }
};

double slope_of(const Node& node) {
  if (!node.attributes().has("activation")) return 1;
  const bool relu = node.attributes().get<std::string>("activation") == "relu";
  return relu ? 0 : node.attributes().get<double>("slope");
}

std::string images_source() {
  return std::string(kImageSource) + kSumColumns + kImageKernelsSource;
}

CudaWork one(CudaLaunch launch) { return {images_source(), {std::move(launch)}, 0, {}}; }

/// Describes a convolution to a library. `kind` says which of its three passes is computed.
CudaLibraryCall by_library(const Convolution& c, CudaConvolution::Kind kind, bool is_tf32) {
  const auto image = [](const Image& i) {
    return CudaConvolution::Tensor{{i.n, i.c, i.h, i.w}, {i.of_n, i.of_c, i.w * i.of_w, i.of_w}};
  };
  const std::int64_t h = c.window.size[0], w = c.window.size[1];
  const CudaConvolution::Tensor x = image(c.xs), y = image(c.ys),
                                weights{{c.ys.c, c.channels, h, w},
                                        {c.channels * h * w, h * w, w, 1}};
  using Kind = CudaConvolution::Kind;
  const Window& window = c.window;
  return {CudaConvolution{kind,
                          kind == Kind::kForward     ? std::array{y, x, weights}
                          : kind == Kind::kInputGrad ? std::array{x, y, weights}
                                                     : std::array{weights, x, y},
                          {window.strides[0], window.strides[1]},
                          {window.dilations[0], window.dilations[1]},
                          {window.pads[0], window.pads[1]},
                          {window.pads[2], window.pads[3]},
                          is_tf32},
          {},
          {},
          {}};
}

/// The launches of a convolution's node.
class ConvolutionWork {
 public:
  ConvolutionWork(const Node& node, const Shape& x, const Shape& weights, const Shape& y)
      : conv(Convolution::of(node, x, weights, y)), rounds_(rounds_products(node)) {
    work.source = images_source();
  }

  CudaWork work{};
  const Convolution conv;

  /// Returns an input or, if the node rounds products, a copy that an added launch rounds to
  /// bfloat16.
  A factor(int input, const Shape& shape) {
    const A from = A::input(std::size_t(input));
    if (!rounds_) return from;
    const std::int64_t n = shape.elements();
    const A to = A::scratch(work.add_scratch(std::size_t(n) * sizeof(float)));
    work.launches.push_back({"rounded", blocks_for(n), {to, from, A::integer(n)}});
    return to;
  }
  /// Adds launches that compute output 0 from two factors. A library's call may replace them.
  void add(CudaConvolution::Kind kind, const A& first, const A& second,
           std::vector<CudaLaunch> launches) {
    if (conv.xs.n > 0) {
      CudaLibraryCall call = by_library(conv, kind, rounds_);
      call.to = A::output(0);
      call.first = first;
      call.second = second;
      launches[0].library = std::move(call);
    }
    for (std::size_t k = 1; k < launches.size(); ++k) launches[k].finishes_the_last = true;
    work.launches.insert(work.launches.end(), launches.begin(), launches.end());
  }
  /// Returns launches that write `results` sums to `to`, each over all windows of `from`.
  std::vector<CudaLaunch> sum_windows(const A& to, std::vector<A> from, std::int64_t results,
                                      const char* function) {
    constexpr std::int64_t kThreadsEnough = 1 << 16;  // enough to keep a GPU busy
    const std::int64_t windows = conv.ys.n * conv.ys.h * conv.ys.w;
    const std::int64_t parts = std::clamp<std::int64_t>(
        kThreadsEnough / std::max<std::int64_t>(results, 1), 1, std::max<std::int64_t>(windows, 1));
    const A sums = A::scratch(work.add_scratch(std::size_t(results * parts) * sizeof(double)));
    from.insert(from.begin(), sums);
    from.insert(from.end(), {A::of(conv), A::integer(parts)});
    return {{function, blocks_for(results * parts), std::move(from)},
            {"sum_parts", results, {to, sums, A::integer(results), A::integer(parts), A::of(1.0)}}};
  }

 private:
  const bool rounds_;
};

CudaWork forward(const Node& node) {
  const Shape &x = node.input(0).shape(), &weights = node.input(1).shape(),
              &y = node.outputs()[0].shape;
  ConvolutionWork c(node, x, weights, y);
  const A first = c.factor(0, x), second = c.factor(1, weights);
  c.add(CudaConvolution::Kind::kForward, first, second,
        {{"conv2d", blocks_for(y.elements()), {A::output(0), first, second, A::of(c.conv)}}});
  const bool biased = node.inputs().size() == 3;
  if (const double slope = slope_of(node); biased || slope != 1) {
    c.work.launches.push_back(
        {"activate",
         blocks_for(y.elements()),
         {A::output(0), biased ? A::input(2) : A::null(), A::of(c.conv.ys), A::number(slope)}});
  }
  return std::move(c.work);
}

CudaWork input_grad(const Node& node) {
  const Shape &dy = node.input(0).shape(), &weights = node.input(1).shape(),
              &dx = node.outputs()[0].shape;
  ConvolutionWork c(node, dx, weights, dy);
  const A first = c.factor(0, dy), second = c.factor(1, weights);
  c.add(CudaConvolution::Kind::kInputGrad, first, second,
        {{"conv2d_input_grad",
          blocks_for(dx.elements()),
          {A::output(0), first, second, A::of(c.conv)}}});
  return std::move(c.work);
}

CudaWork weights_grad(const Node& node) {
  const Shape &x = node.input(0).shape(), &dy = node.input(1).shape(),
              &weights = node.outputs()[0].shape;
  ConvolutionWork c(node, x, weights, dy);
  const A first = c.factor(0, x), second = c.factor(1, dy);
  c.add(CudaConvolution::Kind::kWeightsGrad, first, second,
        c.sum_windows(A::output(0), {first, second}, weights.elements(), "conv2d_weights_parts"));
  if (node.outputs().size() == 2) {
    for (CudaLaunch& launch :
         c.sum_windows(A::output(1), {second}, weights[0], "conv2d_biases_parts")) {
      c.work.launches.push_back(std::move(launch));
    }
  }
  return std::move(c.work);
}

std::optional<CudaWork> convolution(const Node& node) {
  const std::string& op = node.op().name;
  if (op == "conv2d" || op == "conv2d_activation") return forward(node);
  if (op == "conv2d_input_grad") return input_grad(node);
  if (op == "conv2d_weights_grad") return weights_grad(node);
  return {};
}

std::optional<CudaWork> pool(const Node& node) {
  const std::string& op = node.op().name;
  const bool relu = op == "relu_max_pool2d";
  const bool mean = op == "avg_pool2d", of_mean = op == "avg_pool2d_grad";
  if (!relu && !mean && !of_mean && op != "max_pool2d" && op != "max_pool2d_grad") return {};
  const Attributes& attributes = node.attributes();
  const Shape& out = node.outputs()[0].shape;
  const A ys = A::of(image_of(out, attributes));
  const A xs = A::of(image_of(node.input(0).shape(), attributes));
  const A window = A::of(Window::of(Window2d::of(attributes)));
  const std::int64_t blocks = blocks_for(out.elements());
  if (mean) return one({"avg_pool", blocks, {A::output(0), A::input(0), ys, xs, window}});
  if (of_mean || op == "max_pool2d_grad") {
    return one({"pool_grad",
                blocks,
                {A::output(0), A::input(0), of_mean ? A::null() : A::input(1), ys, xs, window}});
  }
  return one({"max_pool",
              blocks,
              {A::output(0), A::output(1), A::input(0), ys, xs, window, A::integer(relu)}});
}

std::optional<CudaWork> response_norm(const Node& node) {
  const bool grad = node.op().name == "local_response_norm_grad";
  if (!grad && node.op().name != "local_response_norm") return {};
  const Attributes& attributes = node.attributes();
  const Shape& shape = node.outputs()[0].shape;
  std::vector<A> arguments = {A::output(0), A::input(0)};
  if (grad) arguments.push_back(A::input(1));
  arguments.push_back(A::of(image_of(shape, attributes)));
  arguments.push_back(A::integer(attributes.get<std::int64_t>("radius")));
  for (const char* const number : {"bias", "alpha", "beta"}) {
    arguments.push_back(A::of(attributes.get<double>(number)));
  }
  return one({grad ? "response_norm_grad" : "response_norm", blocks_for(shape.elements()),
              std::move(arguments)});
}

}  // namespace

std::optional<CudaWork> image_work(const Node& node) {
  if (auto work = convolution(node)) return work;
  if (auto work = pool(node)) return work;
  return response_norm(node);
}

}  // namespace paceline::cuda
