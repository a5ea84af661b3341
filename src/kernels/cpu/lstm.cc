// The products with x of all steps are one GEMM; only the recurrent ones go step by step, with
// weights that are packed once for all of them.
#include <algorithm>

#include "base/buffer.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/lstm_cells.h"
#include "kernels/cpu/vector_math.h"

namespace paceline {

namespace {

struct Sizes {
  explicit Sizes(const Node& node)
      : steps(node.input(0).shape()[0]),
        batch(node.input(0).shape()[1]),
        inputs(node.input(0).shape()[2]),
        hidden(node.input(1).shape()[1]) {}

  std::int64_t rows() const { return steps * batch; }
  std::int64_t gates() const { return 4 * hidden; }
  std::int64_t state() const { return batch * hidden; }
  /// Rows of the batch that are worth a thread.
  std::int64_t grain() const {
    return std::max<std::int64_t>(1, 2000 / std::max(hidden, std::int64_t{1}));
  }

  /// A recurrent product: from h (batch, hidden) to the gates, or back.
  GemmShape recurrent(bool back) const {
    GemmShape shape = back ? GemmShape::packed(batch, hidden, gates(), false, true)
                           : GemmShape::packed(batch, gates(), hidden, false, false, true);
    shape.packed_b = true;
    return shape;
  }
  /// The recurrent half of the weights.
  const float* weights_h(const KernelCall& call) const {
    return call.inputs[3].as<float>() + inputs * gates();
  }

  std::int64_t steps, batch, inputs, hidden;
};

class LstmKernel : public Kernel {
 public:
  LstmKernel(const Node& node, ThreadPool& pool)
      : pool_(pool),
        s_(node),
        forget_bias_(float(node.attributes().get<double>("forget_bias"))),
        from_x_(GemmShape::packed(s_.rows(), s_.gates(), s_.inputs), pool),
        from_h_(s_.recurrent(false), pool) {}

  std::size_t scratch_bytes() const override {
    return from_h_.packed_bytes() + std::max(from_x_.scratch_bytes(), from_h_.scratch_bytes());
  }

  void run(const KernelCall& call) override {
    const std::span<std::byte> packed = call.scratch.first(from_h_.packed_bytes());
    const std::span<std::byte> scratch = call.scratch.subspan(packed.size());
    const float* weights = call.inputs[3].as<float>();
    from_x_.run(call.inputs[0].as<float>(), weights, call.outputs[3].as<float>(), scratch);
    from_h_.pack(s_.weights_h(call), packed);
    const float* weights_h = reinterpret_cast<const float*>(packed.data());
    for (std::int64_t t = 0; t < s_.steps; ++t) step(call, t, weights_h, scratch);
    const std::int64_t last = (s_.steps - 1) * s_.state();
    std::copy_n(call.outputs[0].as<float>() + last, s_.state(), call.outputs[1].as<float>());
    std::copy_n(call.outputs[4].as<float>() + last, s_.state(), call.outputs[2].as<float>());
  }

 private:
  void step(const KernelCall& call, std::int64_t t, const float* weights_h,
            std::span<std::byte> scratch) {
    float* output = call.outputs[0].as<float>() + t * s_.state();
    float* gates = call.outputs[3].as<float>() + t * s_.batch * s_.gates();
    float* cell = call.outputs[4].as<float>() + t * s_.state();
    const float* h = t == 0 ? call.inputs[1].as<float>() : output - s_.state();
    const float* c = t == 0 ? call.inputs[2].as<float>() : cell - s_.state();
    from_h_.run(h, weights_h, gates, scratch);
    pool_.parallel_for(s_.batch, s_.grain(), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = begin; b < end; ++b) {
        const std::int64_t at = b * s_.hidden;
        lstm_forward({gates + b * s_.gates(), call.inputs[4].as<float>(), forget_bias_, c + at,
                      cell + at, output + at, s_.hidden});
      }
    });
  }

  ThreadPool& pool_;
  const Sizes s_;
  const float forget_bias_;
  Gemm from_x_, from_h_;
};

class LstmGradKernel : public Kernel {
 public:
  LstmGradKernel(const Node& node, ThreadPool& pool)
      : pool_(pool),
        s_(node),
        has_outputs_(node.attributes().get<bool>("has_outputs")),
        has_h_(node.attributes().get<bool>("has_h")),
        has_c_(node.attributes().get<bool>("has_c")),
        to_h_(s_.recurrent(true), pool),
        to_x_(GemmShape::packed(s_.rows(), s_.inputs, s_.gates(), false, true), pool),
        to_weights_x_(GemmShape::packed(s_.inputs, s_.gates(), s_.rows(), true), pool),
        to_weights_h0_(GemmShape::packed(s_.hidden, s_.gates(), s_.batch, true), pool),
        to_weights_h_(
            GemmShape::packed(s_.hidden, s_.gates(), s_.rows() - s_.batch, true, false, true),
            pool) {}

  std::size_t scratch_bytes() const override {
    return products_bytes() + to_h_.packed_bytes() + gemm_bytes();
  }

  void run(const KernelCall& call) override {
    auto* d_products = reinterpret_cast<float*>(call.scratch.data());
    const std::span<std::byte> packed =
        call.scratch.subspan(products_bytes(), to_h_.packed_bytes());
    const std::span<std::byte> scratch = call.scratch.subspan(products_bytes() + packed.size());
    begin_states(call);
    to_h_.pack(s_.weights_h(call), packed);
    const float* weights_h = reinterpret_cast<const float*>(packed.data());
    for (std::int64_t t = s_.steps - 1; t >= 0; --t) {
      float* dz = d_products + t * s_.batch * s_.gates();
      through_cells(call, t, dz);
      to_h_.run(dz, weights_h, call.outputs[1].as<float>(), scratch);
    }
    through_weights(call, d_products, scratch);
    sum_biases(d_products, call.outputs[4].as<float>());
  }

 private:
  std::size_t products_bytes() const {
    return round_up(std::size_t(s_.rows() * s_.gates()) * sizeof(float), kBufferAlignment);
  }
  std::size_t gemm_bytes() const {
    return std::max({to_h_.scratch_bytes(), to_x_.scratch_bytes(), to_weights_x_.scratch_bytes(),
                     to_weights_h0_.scratch_bytes(), to_weights_h_.scratch_bytes()});
  }

  // The outputs for the initial states hold the gradients of the states on the way back.
  void begin_states(const KernelCall& call) {
    std::size_t next = has_outputs_ ? 8 : 7;
    const auto begin = [&](bool given, float* state) {
      if (given) {
        std::copy_n(call.inputs[next++].as<float>(), s_.state(), state);
      } else {
        std::fill_n(state, s_.state(), 0.0f);
      }
    };
    begin(has_h_, call.outputs[1].as<float>());
    begin(has_c_, call.outputs[2].as<float>());
  }

  void through_cells(const KernelCall& call, std::int64_t t, float* dz) {
    const float* cell = call.inputs[6].as<float>() + t * s_.state();
    const float* before = t == 0 ? call.inputs[2].as<float>() : cell - s_.state();
    const float* gates = call.inputs[5].as<float>() + t * s_.batch * s_.gates();
    const float* d_output = has_outputs_ ? call.inputs[7].as<float>() + t * s_.state() : nullptr;
    pool_.parallel_for(s_.batch, s_.grain(), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = begin; b < end; ++b) {
        const std::int64_t at = b * s_.hidden;
        lstm_backward({gates + 4 * at, before + at, cell + at,
                       d_output == nullptr ? nullptr : d_output + at,
                       call.outputs[1].as<float>() + at, call.outputs[2].as<float>() + at,
                       dz + 4 * at, s_.hidden});
      }
    });
  }

  void through_weights(const KernelCall& call, const float* dz, std::span<std::byte> scratch) {
    const float* weights = call.inputs[3].as<float>();
    float* d_weights = call.outputs[3].as<float>();
    float* d_weights_h = d_weights + s_.inputs * s_.gates();
    to_x_.run(dz, weights, call.outputs[0].as<float>(), scratch);
    to_weights_x_.run(call.inputs[0].as<float>(), dz, d_weights, scratch);
    to_weights_h0_.run(call.inputs[1].as<float>(), dz, d_weights_h, scratch);
    const float* dz_after = dz + s_.batch * s_.gates();
    to_weights_h_.run(call.inputs[4].as<float>(), dz_after, d_weights_h, scratch);
  }

  // By columns, so that each thread adds whole rows of its own part, always in the same order.
  void sum_biases(const float* dz, float* d_biases) {
    pool_.parallel_for(s_.gates(), 256, [&](std::int64_t begin, std::int64_t end) {
      float* sum = d_biases + begin;
      std::fill(sum, d_biases + end, 0.0f);
      for (std::int64_t row = 0; row < s_.rows(); ++row) {
        vector_binary(BinaryFunction::kAdd, 0, {sum}, {dz + row * s_.gates() + begin}, sum,
                      end - begin);
      }
    });
  }

  ThreadPool& pool_;
  const Sizes s_;
  const bool has_outputs_, has_h_, has_c_;
  Gemm to_h_, to_x_, to_weights_x_, to_weights_h0_, to_weights_h_;
};

}  // namespace

void add_cpu_lstm_kernels(KernelTable& table) {
  table.add("lstm", make_float_kernel_of<LstmKernel>);
  table.add("lstm_grad", make_float_kernel_of<LstmGradKernel>);
}

}  // namespace paceline
