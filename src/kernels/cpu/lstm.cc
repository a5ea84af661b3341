// One GEMM computes the products with x for all steps. Only the recurrent products are computed
// step by step, with weights that are packed once for all steps.
#include <algorithm>

#include "base/buffer.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/lstm_cells.h"
#include "kernels/cpu/operand_cast.h"
#include "kernels/cpu/vector_math.h"
#include "kernels/rounded_products.h"

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
  /// Returns the fewest batch rows for which waking a thread pays.
  std::int64_t grain() const {
    return std::max<std::int64_t>(1, 2000 / std::max(hidden, std::int64_t{1}));
  }

  /// Returns the shape of a recurrent product: from h (batch, hidden) to the gates, or back.
  GemmShape recurrent(bool back) const {
    GemmShape shape = back ? GemmShape::packed(batch, hidden, gates(), false, true)
                           : GemmShape::packed(batch, gates(), hidden, false, false, true);
    shape.packed_b = true;
    return shape;
  }
  std::int64_t weights() const { return (inputs + hidden) * gates(); }

  std::int64_t steps, batch, inputs, hidden;
};

/// Splits a kernel's scratch memory into consecutive parts.
class ScratchParts {
 public:
  explicit ScratchParts(std::span<std::byte> all) : rest_(all) {}
  std::span<std::byte> take(std::size_t bytes) {
    const std::span<std::byte> part = rest_.first(bytes);
    rest_ = rest_.subspan(bytes);
    return part;
  }
  std::span<std::byte> rest() const { return rest_; }

 private:
  std::span<std::byte> rest_;
};

/// The recurrent product of each step. Rows of the batch are independent: if the product is cut by
/// rows, each lane of rows goes through all steps on one thread of its own. Otherwise one lane has
/// the whole batch and all threads.
class RecurrentProduct {
 public:
  RecurrentProduct(const Sizes& s, bool back, bool rounds, ThreadPool& pool)
      : pool_(pool),
        from_width_(back ? s.gates() : s.hidden),
        to_width_(back ? s.hidden : s.gates()),
        gemm_(OperandCast(rounds, pool).shape(s.recurrent(back)), pool),
        cast_(rounds, gemm_.row_parts() > 1 ? one_thread_ : pool) {}

  std::size_t packed_bytes() const { return gemm_.packed_bytes(); }
  void pack(const void* weights, std::span<std::byte> packed) { gemm_.pack(weights, packed); }
  std::size_t scratch_bytes() const {
    return gemm_.scratch_bytes() + std::size_t(gemm_.row_parts()) * operand_bytes();
  }

  /// Rows [begin, end) of the batch, and the threads for them.
  struct Lane {
    std::int64_t index, begin, end;
    ThreadPool& threads;
  };
  /// Calls f(lane) for each lane, all at the same time.
  template <typename F>
  void run_lanes(F&& f) {
    const bool several = gemm_.row_parts() > 1;
    auto lane = [&](std::int64_t i) {
      const auto [begin, end] = gemm_.rows_of(i);
      f(Lane{i, begin, end, several ? one_thread_ : pool_});
    };
    pool_.run_tiles(gemm_.row_parts(), TileFunction(lane));
  }
  /// `from` and `to` hold the whole batch; the lane reads and writes its own rows.
  void run(const Lane& lane, const float* from, std::span<const std::byte> packed, float* to,
           std::span<std::byte> scratch) {
    const std::span<std::byte> space = scratch.subspan(
        gemm_.scratch_bytes() + std::size_t(lane.index) * operand_bytes(), operand_bytes());
    const void* operand =
        cast_.cast(from + lane.begin * from_width_, (lane.end - lane.begin) * from_width_, space);
    gemm_.run_rows(lane.index, operand, packed.data(), to + lane.begin * to_width_, scratch);
  }

 private:
  std::size_t operand_bytes() const {
    std::int64_t most = 0;
    for (std::int64_t i = 0; i < gemm_.row_parts(); ++i) {
      const auto [begin, end] = gemm_.rows_of(i);
      most = std::max(most, end - begin);
    }
    return cast_.bytes(most * from_width_);
  }

  ThreadPool& pool_;
  ThreadPool one_thread_{1};
  const std::int64_t from_width_, to_width_;
  Gemm gemm_;
  OperandCast cast_;
};

class LstmKernel : public Kernel {
 public:
  LstmKernel(const Node& node, ThreadPool& pool)
      : s_(node),
        cast_(rounds_products(node), pool),
        forget_bias_(float(node.attributes().get<double>("forget_bias"))),
        from_x_(cast_.shape(GemmShape::packed(s_.rows(), s_.gates(), s_.inputs)), pool),
        from_h_(s_, false, rounds_products(node), pool) {}

  std::size_t scratch_bytes() const override {
    return cast_.bytes(s_.weights()) + cast_.bytes(s_.rows() * s_.inputs) + from_h_.packed_bytes() +
           std::max(from_x_.scratch_bytes(), from_h_.scratch_bytes());
  }

  void run(const KernelCall& call) override {
    ScratchParts parts(call.scratch);
    const void* weights =
        cast_.cast(call.inputs[3].as<float>(), s_.weights(), parts.take(cast_.bytes(s_.weights())));
    const std::int64_t elements = s_.rows() * s_.inputs;
    const void* x =
        cast_.cast(call.inputs[0].as<float>(), elements, parts.take(cast_.bytes(elements)));
    const std::span<std::byte> packed = parts.take(from_h_.packed_bytes());
    from_x_.run(x, weights, call.outputs[3].as<float>(), parts.rest());
    from_h_.pack(cast_.element(weights, s_.inputs * s_.gates()), packed);
    from_h_.run_lanes([&](const RecurrentProduct::Lane& lane) {
      for (std::int64_t t = 0; t < s_.steps; ++t) step(call, t, lane, packed, parts.rest());
    });
    const std::int64_t last = (s_.steps - 1) * s_.state();
    std::copy_n(call.outputs[0].as<float>() + last, s_.state(), call.outputs[1].as<float>());
    std::copy_n(call.outputs[4].as<float>() + last, s_.state(), call.outputs[2].as<float>());
  }

 private:
  void step(const KernelCall& call, std::int64_t t, const RecurrentProduct::Lane& lane,
            std::span<const std::byte> weights_h, std::span<std::byte> scratch) {
    float* output = call.outputs[0].as<float>() + t * s_.state();
    float* gates = call.outputs[3].as<float>() + t * s_.batch * s_.gates();
    float* cell = call.outputs[4].as<float>() + t * s_.state();
    const float* h = t == 0 ? call.inputs[1].as<float>() : output - s_.state();
    const float* c = t == 0 ? call.inputs[2].as<float>() : cell - s_.state();
    from_h_.run(lane, h, weights_h, gates, scratch);
    const auto cells = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = lane.begin + begin; b < lane.begin + end; ++b) {
        const std::int64_t at = b * s_.hidden;
        lstm_forward({gates + b * s_.gates(), call.inputs[4].as<float>(), forget_bias_, c + at,
                      cell + at, output + at, s_.hidden});
      }
    };
    lane.threads.parallel_for(lane.end - lane.begin, s_.grain(), cells);
  }

  const Sizes s_;
  const OperandCast cast_;
  const float forget_bias_;
  Gemm from_x_;
  RecurrentProduct from_h_;
};

class LstmGradKernel : public Kernel {
 public:
  LstmGradKernel(const Node& node, ThreadPool& pool)
      : pool_(pool),
        s_(node),
        cast_(rounds_products(node), pool),
        has_outputs_(node.attributes().get<bool>("has_outputs")),
        has_h_(node.attributes().get<bool>("has_h")),
        has_c_(node.attributes().get<bool>("has_c")),
        to_h_(s_, true, rounds_products(node), pool),
        to_x_(product(s_.rows(), s_.inputs, s_.gates(), false, true)),
        to_weights_(product(s_.inputs + s_.hidden, s_.gates(), s_.rows(), true)) {}

  std::size_t scratch_bytes() const override {
    return floats_bytes(s_.rows() * s_.gates()) + floats_bytes(s_.batch * s_.gates()) +
           cast_.bytes(s_.weights()) + cast_.bytes(s_.rows() * s_.gates()) + joined_bytes() +
           to_h_.packed_bytes() + gemm_bytes();
  }

  void run(const KernelCall& call) override {
    ScratchParts parts(call.scratch);
    const auto take_floats = [&](std::int64_t n) {
      return reinterpret_cast<float*>(parts.take(floats_bytes(n)).data());
    };
    float* const d_products = take_floats(s_.rows() * s_.gates());
    float* const sums = take_floats(s_.batch * s_.gates());
    std::fill_n(sums, s_.batch * s_.gates(), 0.0f);
    const void* weights =
        cast_.cast(call.inputs[3].as<float>(), s_.weights(), parts.take(cast_.bytes(s_.weights())));
    const std::span<std::byte> dz_space = parts.take(cast_.bytes(s_.rows() * s_.gates()));
    const std::span<std::byte> joined = parts.take(joined_bytes());
    const std::span<std::byte> packed = parts.take(to_h_.packed_bytes());
    begin_states(call);
    to_h_.pack(cast_.element(weights, s_.inputs * s_.gates()), packed);
    const std::int64_t step = s_.batch * s_.gates();
    to_h_.run_lanes([&](const RecurrentProduct::Lane& lane) {
      for (std::int64_t t = s_.steps - 1; t >= 0; --t) {
        through_cells(call, t, lane, d_products + t * step, sums);
        to_h_.run(lane, d_products + t * step, packed, call.outputs[1].as<float>(), parts.rest());
      }
    });
    const void* dz = cast_.cast(d_products, s_.rows() * s_.gates(), dz_space);
    to_x_.run(dz, weights, call.outputs[0].as<float>(), parts.rest());
    join_operands(call, joined.data());
    to_weights_.run(joined.data(), dz, call.outputs[3].as<float>(), parts.rest());
    sum_biases(sums, call.outputs[4].as<float>());
  }

 private:
  Gemm product(std::int64_t m, std::int64_t n, std::int64_t k, bool transpose_a,
               bool transpose_b = false) {
    return {cast_.shape(GemmShape::packed(m, n, k, transpose_a, transpose_b)), pool_};
  }
  static std::size_t floats_bytes(std::int64_t n) {
    return round_up(std::size_t(n) * sizeof(float), kBufferAlignment);
  }
  std::size_t joined_bytes() const {
    return cast_.joined_bytes(s_.rows() * (s_.inputs + s_.hidden));
  }
  std::size_t gemm_bytes() const {
    return std::max({to_h_.scratch_bytes(), to_x_.scratch_bytes(), to_weights_.scratch_bytes()});
  }

  // In the loop over the steps, outputs 1 and 2 hold the gradients of the current states. In the
  // end these are the gradients of the initial states.
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

  // Adds dz to `sums`, which has a sum for each row of the batch. One thread at a time adds to a
  // sum, from the last step to the first, so the number of threads changes no bit.
  void through_cells(const KernelCall& call, std::int64_t t, const RecurrentProduct::Lane& lane,
                     float* dz, float* sums) {
    const float* cell = call.inputs[6].as<float>() + t * s_.state();
    const float* before = t == 0 ? call.inputs[2].as<float>() : cell - s_.state();
    const float* gates = call.inputs[5].as<float>() + t * s_.batch * s_.gates();
    const float* d_output = has_outputs_ ? call.inputs[7].as<float>() + t * s_.state() : nullptr;
    const auto cells = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = lane.begin + begin; b < lane.begin + end; ++b) {
        const std::int64_t at = b * s_.hidden;
        lstm_backward({gates + 4 * at, before + at, cell + at,
                       d_output == nullptr ? nullptr : d_output + at,
                       call.outputs[1].as<float>() + at, call.outputs[2].as<float>() + at,
                       dz + 4 * at, s_.hidden});
        float* const sum = sums + 4 * at;
        vector_binary(BinaryFunction::kAdd, 0, {sum}, {dz + 4 * at}, sum, s_.gates());
      }
    };
    lane.threads.parallel_for(lane.end - lane.begin, s_.grain(), cells);
  }

  // Builds the operand of the product that gives the gradient of the weights. Each of its rows has
  // x and then the h of the step before.
  void join_operands(const KernelCall& call, std::byte* joined) {
    const float* const x = call.inputs[0].as<float>();
    const float* const h0 = call.inputs[1].as<float>();
    const float* const h = call.inputs[4].as<float>();
    const std::int64_t width = s_.inputs + s_.hidden;
    pool_.parallel_for(s_.rows(), s_.grain(), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const std::int64_t before = row - s_.batch;
        cast_.put(x + row * s_.inputs, s_.inputs, joined, row * width);
        cast_.put(before < 0 ? h0 + row * s_.hidden : h + before * s_.hidden, s_.hidden, joined,
                  row * width + s_.inputs);
      }
    });
  }

  void sum_biases(const float* sums, float* d_biases) {
    std::fill_n(d_biases, s_.gates(), 0.0f);
    for (std::int64_t b = 0; b < s_.batch; ++b) {
      vector_binary(BinaryFunction::kAdd, 0, {d_biases}, {sums + b * s_.gates()}, d_biases,
                    s_.gates());
    }
  }

  ThreadPool& pool_;
  const Sizes s_;
  const OperandCast cast_;
  const bool has_outputs_, has_h_, has_c_;
  RecurrentProduct to_h_;
  Gemm to_x_, to_weights_;
};

}  // namespace

void add_cpu_lstm_kernels(KernelTable& table) {
  table.add("lstm", make_float_kernel_of<LstmKernel>);
  table.add("lstm_grad", make_float_kernel_of<LstmGradKernel>);
}

}  // namespace paceline
