#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/random_blocks.h"

namespace paceline {

namespace {

class DropoutKernel : public Kernel {
 public:
  DropoutKernel(const Node& node, ThreadPool& pool)
      : pool_(pool), stream_(stream_of(node)), keep_(node.attributes().get<double>("keep")) {}

  void run(const KernelCall& call) override {
    const float* x = call.inputs[0].as<float>();
    float* y = call.outputs[0].as<float>();
    const float keep = float(keep_), factor = float(1 / keep_);
    const auto drop = [=](const std::uint32_t* words, std::int64_t first, std::int64_t count) {
      vector_drop(words, keep, factor, x + first, y + first, count);
    };
    for_random_blocks(pool_, RandomStream(call.step, stream_), call.outputs[0].shape.elements(),
                      drop);
  }

 private:
  ThreadPool& pool_;
  const std::string stream_;
  const double keep_;
};

}  // namespace

void add_cpu_dropout_kernels(KernelTable& table) {
  table.add("dropout", make_float_kernel_of<DropoutKernel>);
}

}  // namespace paceline
