#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/random_blocks.h"

namespace paceline {

namespace {

class RandomKernel : public Kernel {
 public:
  RandomKernel(const Node& node, ThreadPool& pool) : pool_(pool), stream_(stream_of(node)) {}

 protected:
  template <typename F>
  void fill(const KernelCall& call, const F& f) {
    for_random_blocks(pool_, RandomStream(call.step, stream_), call.outputs[0].shape.elements(), f);
  }

 private:
  ThreadPool& pool_;
  const std::string stream_;
};

class RandomNormalKernel : public RandomKernel {
 public:
  RandomNormalKernel(const Node& node, ThreadPool& pool)
      : RandomKernel(node, pool),
        mean_(float(node.attributes().get<double>("mean"))),
        stddev_(float(node.attributes().get<double>("stddev"))) {}

  void run(const KernelCall& call) override {
    float* out = call.outputs[0].as<float>();
    fill(call, [&](const std::uint32_t* words, std::int64_t first, std::int64_t count) {
      for (std::int64_t i = 0; i < count; i += 2) {
        const auto pair = to_normal_pair<float>(words[i], words[i + 1]);
        out[first + i] = mean_ + stddev_ * pair.first;
        if (i + 1 < count) out[first + i + 1] = mean_ + stddev_ * pair.second;
      }
    });
  }

 private:
  const float mean_, stddev_;
};

class RandomUniformKernel : public RandomKernel {
 public:
  RandomUniformKernel(const Node& node, ThreadPool& pool)
      : RandomKernel(node, pool),
        low_(float(node.attributes().get<double>("low"))),
        high_(float(node.attributes().get<double>("high"))) {}

  void run(const KernelCall& call) override {
    float* out = call.outputs[0].as<float>();
    fill(call, [&](const std::uint32_t* words, std::int64_t first, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) {
        out[first + i] = to_uniform<float>(words[i], low_, high_);
      }
    });
  }

 private:
  const float low_, high_;
};

class RandomIntegersKernel : public RandomKernel {
 public:
  RandomIntegersKernel(const Node& node, ThreadPool& pool)
      : RandomKernel(node, pool),
        low_(node.attributes().get<std::int64_t>("low")),
        range_(std::uint64_t(node.attributes().get<std::int64_t>("high") - low_)) {}

  void run(const KernelCall& call) override {
    auto* out = call.outputs[0].as<std::int32_t>();
    fill(call, [&](const std::uint32_t* words, std::int64_t first, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) {
        out[first + i] = to_integer(words[i], low_, range_);
      }
    });
  }

 private:
  const std::int64_t low_;
  const std::uint64_t range_;
};

}  // namespace

void add_cpu_random_kernels(KernelTable& table) {
  table.add("random_normal", make_float_kernel_of<RandomNormalKernel>);
  table.add("random_uniform", make_float_kernel_of<RandomUniformKernel>);
  table.add("random_integers", make_kernel_of<RandomIntegersKernel>);
}

}  // namespace paceline
