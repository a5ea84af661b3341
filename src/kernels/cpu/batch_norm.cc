// Batch normalisation of images whose channels lie last, in float32. Each slice of rows is summed
// by one thread, and the sums of slices are then added in order. The slices depend on the shape
// alone, so the number of threads changes no bit.
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/buffer.h"
#include "kernels/cpu/channel_rows.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/grains.h"
#include "ops/image.h"
#include "paceline/op.h"

namespace paceline {

namespace {

class BatchNormRows : public Kernel {
 public:
  BatchNormRows(const Node& node, const Shape& x, ThreadPool& pool)
      : rows_(x[0] * x[1] * x[2]),
        channels_(x[3]),
        slices_(std::clamp<std::int64_t>(rows_ * channels_ / kSliceElements, 1, kMostSlices)),
        epsilon_(node.attributes().get<double>("epsilon")),
        slope_(node.attributes().has("slope") ? float(node.attributes().get<double>("slope")) : 1),
        pool_(pool) {}

  std::size_t scratch_bytes() const override {
    return sums_bytes() + std::size_t(kArrays) * array_bytes();
  }

 protected:
  static constexpr int kArrays = 6;

  /// Returns array `i` in scratch memory, which has one float for each channel.
  float* array(const KernelCall& call, int i) const {
    return reinterpret_cast<float*>(call.scratch.data() + sums_bytes() +
                                    std::size_t(i) * array_bytes());
  }
  struct Sums {
    double *first, *second;  // one for each channel
    double rows;             // the number of rows in the sums
  };
  /// Computes two sums for each channel. add(first element, rows, sums) adds `rows` rows to `sums`.
  template <typename F>
  Sums sum(const KernelCall& call, const F& add) {
    auto slice = [&](std::int64_t i) {
      const Sums own = sums_of(call, i);
      std::fill_n(own.first, 2 * channels_, 0.0);
      const std::int64_t begin = rows_ * i / slices_;
      add(begin * channels_, rows_ * (i + 1) / slices_ - begin, own);
    };
    pool_.run_tiles(slices_, TileFunction(slice));
    const Sums total = sums_of(call, 0);
    for (std::int64_t i = 1; i < slices_; ++i) {
      const Sums own = sums_of(call, i);
      for (std::int64_t c = 0; c < 2 * channels_; ++c) total.first[c] += own.first[c];
    }
    return total;
  }
  /// Returns the sums over all parts of the batch, of which `own` has those of this part.
  Sums add_up(SumExchange& exchange, const Sums& own) const {
    double& rows = own.first[2 * channels_];
    rows = double(rows_);
    exchange.add_up({own.first, std::size_t(2 * channels_ + 1)});
    return {own.first, own.second, rows};
  }
  /// Calls f(first element, rows) for ranges of rows.
  template <typename F>
  void for_rows(const F& f) {
    const std::int64_t grain = std::max<std::int64_t>(1, kElementsGrain / channels_);
    pool_.parallel_for(rows_, grain, [&](std::int64_t begin, std::int64_t end) {
      f(begin * channels_, end - begin);
    });
  }
  double inverse_deviation(double variance) const { return 1 / std::sqrt(variance + epsilon_); }

  const std::int64_t rows_, channels_, slices_;
  const double epsilon_;
  const float slope_;
  ThreadPool& pool_;

 private:
  static constexpr std::int64_t kSliceElements = 32 * 1024, kMostSlices = 64;

  std::size_t slice_bytes() const {
    return round_up(std::size_t(2 * channels_ + 1) * sizeof(double), kBufferAlignment);
  }
  std::size_t sums_bytes() const { return std::size_t(slices_) * slice_bytes(); }
  std::size_t array_bytes() const {
    return round_up(std::size_t(channels_) * sizeof(float), kBufferAlignment);
  }
  Sums sums_of(const KernelCall& call, std::int64_t i) const {
    auto* const first =
        reinterpret_cast<double*>(call.scratch.data() + std::size_t(i) * slice_bytes());
    return {first, first + channels_, double(rows_)};
  }
};

class BatchNormKernel : public BatchNormRows {
 public:
  BatchNormKernel(const Node& node, ThreadPool& pool)
      : BatchNormRows(node, node.input(0).shape(), pool) {}

  void run(const KernelCall& call) override {
    const float* x = call.inputs[0].as<float>();
    const float* gains = call.inputs[1].as<float>();
    float* center = array(call, 0);
    sample_means(x, center);
    Sums sums = sum(call, [&](std::int64_t first, std::int64_t rows, const Sums& own) {
      sum_channels(x + first, rows, channels_, center, own.first, own.second);
    });
    if (call.exchange != nullptr) sums = add_up_from_zero(*call.exchange, sums, center);
    float *mean = array(call, 1), *scale = array(call, 2);
    for (std::int64_t c = 0; c < channels_; ++c) {
      const double distance = sums.first[c] / sums.rows;
      const double variance = std::max(0.0, sums.second[c] / sums.rows - distance * distance);
      call.outputs[1].as<float>()[c] = mean[c] = float(double(center[c]) + distance);
      call.outputs[2].as<float>()[c] = float(variance);
      scale[c] = float(double(gains[c]) * inverse_deviation(float(variance)));
    }
    const ChannelNorm norm{mean, scale, call.inputs[2].as<float>(), slope_};
    for_rows([&](std::int64_t first, std::int64_t rows) {
      normalize_channels(x + first, rows, channels_, norm, call.outputs[0].as<float>() + first);
    });
  }

 private:
  // Each part of the batch sums distances from a centre of its own. So its sums are converted to
  // sums of distances from zero before the parts' sums are added; doubles have enough digits for
  // this.
  Sums add_up_from_zero(SumExchange& exchange, const Sums& own, float* center) const {
    for (std::int64_t c = 0; c < channels_; ++c) {
      const double from = double(std::exchange(center[c], 0.0f));
      own.second[c] += from * (2 * own.first[c] + own.rows * from);
      own.first[c] += own.rows * from;
    }
    return add_up(exchange, own);
  }

  // A sum of squared distances loses more digits the farther the mean lies from the point that the
  // distances are counted from. So this function writes the means of some rows to `means`, and the
  // caller counts distances from these.
  void sample_means(const float* x, float* means) const {
    const std::int64_t sample = std::min<std::int64_t>(rows_, 64);
    for (std::int64_t c = 0; c < channels_; ++c) {
      double sum = 0;
      for (std::int64_t i = 0; i < sample; ++i)
        sum += double(x[rows_ * i / sample * channels_ + c]);
      means[c] = float(sum / double(sample));
    }
  }
};

class BatchNormInferenceKernel : public BatchNormRows {
 public:
  BatchNormInferenceKernel(const Node& node, ThreadPool& pool)
      : BatchNormRows(node, node.input(0).shape(), pool) {}

  void run(const KernelCall& call) override {
    float* scale = array(call, 0);
    for (std::int64_t c = 0; c < channels_; ++c) {
      scale[c] = float(double(call.inputs[1].as<float>()[c]) *
                       inverse_deviation(double(call.inputs[4].as<float>()[c])));
    }
    const ChannelNorm norm{call.inputs[3].as<float>(), scale, call.inputs[2].as<float>(), slope_};
    for_rows([&](std::int64_t first, std::int64_t rows) {
      normalize_channels(call.inputs[0].as<float>() + first, rows, channels_, norm,
                         call.outputs[0].as<float>() + first);
    });
  }
};

/// dx = gain·(dz − mean(dz) − x̂·mean(dz·x̂)) ÷ deviation, or gain·dz ÷ deviation if the statistics
/// are given. dz is dy, times the slope where the input of a fused activation is below zero.
class BatchNormGradKernel : public BatchNormRows {
 public:
  BatchNormGradKernel(const Node& node, ThreadPool& pool)
      : BatchNormRows(node, node.input(1).shape(), pool),
        of_batch_(node.op().name != "batch_norm_inference_grad") {}

  void run(const KernelCall& call) override {
    const float *dy = call.inputs[0].as<float>(), *x = call.inputs[1].as<float>();
    const ChannelNorm norm = norm_of(call);
    const Sums sums = sum(call, [&](std::int64_t first, std::int64_t rows, const Sums& own) {
      sum_channel_gradients(dy + first, x + first, rows, channels_, norm, own.first, own.second);
    });
    give_gains_and_offsets(call, sums);
    const ChannelGradient gradient = gradient_of(
        call, !of_batch_ || call.exchange == nullptr ? sums : mean_of_parts(*call.exchange, sums));
    for_rows([&](std::int64_t first, std::int64_t rows) {
      channel_gradients(dy + first, x + first, rows, channels_, norm, gradient,
                        call.outputs[0].as<float>() + first);
    });
  }

 private:
  ChannelNorm norm_of(const KernelCall& call) const {
    float *scale = array(call, 0), *offset = array(call, 1);
    for (std::int64_t c = 0; c < channels_; ++c) {
      scale[c] = float(double(call.inputs[2].as<float>()[c]) *
                       inverse_deviation(double(call.inputs[4].as<float>()[c])));
      offset[c] = call.inputs.size() == 6 ? call.inputs[5].as<float>()[c] : 0;
    }
    return {call.inputs[3].as<float>(), scale, offset, slope_};
  }

  void give_gains_and_offsets(const KernelCall& call, const Sums& sums) const {
    for (std::int64_t c = 0; c < channels_; ++c) {
      const double inverse = inverse_deviation(double(call.inputs[4].as<float>()[c]));
      call.outputs[1].as<float>()[c] = float(inverse * sums.second[c]);
      call.outputs[2].as<float>()[c] = float(sums.first[c]);
    }
  }

  // In each part, dy is the gradient of the part's own mean loss. The loss of the batch is the mean
  // of these losses, weighted by the parts' rows. So the sums of the batch are the mean of the
  // parts' sums with the same weights.
  Sums mean_of_parts(SumExchange& exchange, const Sums& own) const {
    for (std::int64_t c = 0; c < 2 * channels_; ++c) own.first[c] *= own.rows;
    const Sums all = add_up(exchange, own);
    for (std::int64_t c = 0; c < 2 * channels_; ++c) all.first[c] /= all.rows;
    return all;
  }

  ChannelGradient gradient_of(const KernelCall& call, const Sums& sums) const {
    float *of_gradient = array(call, 2), *of_distance = array(call, 3), *constant = array(call, 4);
    for (std::int64_t c = 0; c < channels_; ++c) {
      const double inverse = inverse_deviation(double(call.inputs[4].as<float>()[c]));
      const double factor = double(call.inputs[2].as<float>()[c]) * inverse;
      const double share = of_batch_ ? factor / double(rows_) : 0;
      of_gradient[c] = float(factor);
      of_distance[c] = float(-share * inverse * inverse * sums.second[c]);
      constant[c] = float(-share * sums.first[c]);
    }
    return {of_gradient, of_distance, constant};
  }

  const bool of_batch_;
};

/// Returns null if the channels of the images do not lie last: naive kernels compute such nodes.
template <typename K>
std::unique_ptr<Kernel> make_channels_last(const Node& node, ThreadPool& pool) {
  if (!channels_last(node.attributes())) return nullptr;
  return make_float_kernel_of<K>(node, pool);
}

}  // namespace

void add_cpu_batch_norm_kernels(KernelTable& table) {
  table.add("batch_norm", make_channels_last<BatchNormKernel>);
  table.add("batch_norm_activation", make_channels_last<BatchNormKernel>);
  table.add("batch_norm_inference", make_channels_last<BatchNormInferenceKernel>);
  table.add("batch_norm_inference_activation", make_channels_last<BatchNormInferenceKernel>);
  table.add("batch_norm_grad", make_channels_last<BatchNormGradKernel>);
  table.add("batch_norm_activation_grad", make_channels_last<BatchNormGradKernel>);
  table.add("batch_norm_inference_grad", make_channels_last<BatchNormGradKernel>);
}

}  // namespace paceline
