#include "kernels/naive/naive_kernels.h"
#include "kernels/random_stream.h"

namespace paceline {

namespace {

template <typename T>
struct NaiveRandomNormal {
  static void run(const Node& node, const KernelCall& call) {
    const T mean = T(node.attributes().get<double>("mean"));
    const T stddev = T(node.attributes().get<double>("stddev"));
    const RandomStream stream(call.step, stream_of(node));
    for (std::int64_t i = 0; i < call.outputs[0].shape.elements(); ++i) {
      const PhiloxBlock words = stream.block(i / 4);
      const std::size_t pair = std::size_t(i % 4 / 2 * 2);
      const NormalPair<T> normal = to_normal_pair<T>(words[pair], words[pair + 1]);
      call.outputs[0].as<T>()[i] = mean + stddev * (i % 2 == 0 ? normal.first : normal.second);
    }
  }
};

template <typename T>
struct NaiveRandomUniform {
  static void run(const Node& node, const KernelCall& call) {
    const T low = T(node.attributes().get<double>("low"));
    const T high = T(node.attributes().get<double>("high"));
    const RandomStream stream(call.step, stream_of(node));
    for (std::int64_t i = 0; i < call.outputs[0].shape.elements(); ++i) {
      const std::uint32_t word = stream.block(i / 4)[std::size_t(i % 4)];
      call.outputs[0].as<T>()[i] = to_uniform<T>(word, low, high);
    }
  }
};

void random_integers(const Node& node, const KernelCall& call) {
  const std::int64_t low = node.attributes().get<std::int64_t>("low");
  const std::int64_t high = node.attributes().get<std::int64_t>("high");
  const RandomStream stream(call.step, stream_of(node));
  for (std::int64_t i = 0; i < call.outputs[0].shape.elements(); ++i) {
    const std::uint32_t word = stream.block(i / 4)[std::size_t(i % 4)];
    call.outputs[0].as<std::int32_t>()[i] = to_integer(word, low, std::uint64_t(high - low));
  }
}

std::unique_ptr<Kernel> make_random_integers(const Node& node, ThreadPool&) {
  return std::make_unique<PlainKernel>(node, random_integers);
}

}  // namespace

void add_naive_random_kernels(KernelTable& table) {
  table.add("random_normal", make_naive_kernel_of<NaiveRandomNormal>);
  table.add("random_uniform", make_naive_kernel_of<NaiveRandomUniform>);
  table.add("random_integers", make_random_integers);
}

}  // namespace paceline
