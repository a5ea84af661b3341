#include "kernels/naive/naive_kernels.h"
#include "kernels/random_stream.h"

namespace paceline {

namespace {

template <typename T>
struct NaiveDropout {
  static void run(const Node& node, const KernelCall& call) {
    const double keep = node.attributes().get<double>("keep");
    const RandomStream stream(call.step, stream_of(node));
    for (std::int64_t i = 0; i < call.outputs[0].shape.elements(); ++i) {
      const bool kept = to_unit_float(stream.block(i / 4)[std::size_t(i % 4)]) < float(keep);
      call.outputs[0].as<T>()[i] = kept ? call.inputs[0].as<T>()[i] * T(1 / keep) : T(0);
    }
  }
};

}  // namespace

void add_naive_dropout_kernels(KernelTable& table) {
  table.add("dropout", make_naive_kernel_of<NaiveDropout>);
}

}  // namespace paceline
