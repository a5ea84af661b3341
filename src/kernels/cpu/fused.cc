// fused_elementwise in float32: y (…) from inputs (…) or (1). It interprets the program over blocks
// so short that the results of all steps stay in the first-level cache.
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graph/fused_program.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/element_function.h"

namespace paceline {

namespace {

constexpr std::int64_t kFusedBlock = 1024;
constexpr std::int64_t kFusedGrain = 16 * 1024;

/// An operand of a step: one of the node's inputs, or a block of an earlier step's results.
struct Source {
  bool is_input = false;
  std::size_t index = 0;
  bool repeats = false;
};

struct Step {
  ElementFunction function;
  float number = 0;
  std::array<Source, 3> operands;  // missing operands repeat the last one
};

Source source_of(const FusedOperand& operand, const Node& node) {
  Source source{operand.kind == FusedOperand::Kind::kInput, std::size_t(operand.index), false};
  source.repeats = source.is_input && node.input(operand.index).shape().elements() == 1;
  return source;
}

std::vector<Step> prepare(const Node& node, std::string_view program) {
  std::vector<Step> steps;
  for (const FusedStep& step : parse_fused_program(program)) {
    const auto source = [&](std::size_t i) {
      return source_of(step.operands[std::min(i, step.operands.size() - 1)], node);
    };
    steps.push_back(
        {element_function(step.op), float(step.number), {source(0), source(1), source(2)}});
  }
  return steps;
}

class FusedKernel : public Kernel {
 public:
  FusedKernel(const Node& node, std::string_view program, ThreadPool& pool)
      : steps_(prepare(node, program)),
        elements_(node.outputs()[0].shape.elements()),
        pool_(pool) {}

  /// Returns the bytes for a block of results of each step but the last, for each tile.
  std::size_t scratch_bytes() const override { return std::size_t(tiles()) * tile_bytes(); }

  void run(const KernelCall& call) override {
    auto tile = [&](std::int64_t t) {
      float* results =
          reinterpret_cast<float*>(call.scratch.data() + std::size_t(t) * tile_bytes());
      const std::int64_t end = elements_ * (t + 1) / tiles();
      for (std::int64_t begin = elements_ * t / tiles(); begin < end; begin += kFusedBlock) {
        run_block(call, results, begin, std::min(kFusedBlock, end - begin));
      }
    };
    pool_.run_tiles(tiles(), TileFunction(tile));
  }

 private:
  std::int64_t tiles() const {
    return std::min(std::int64_t{pool_.threads()} * 4, (elements_ + kFusedGrain - 1) / kFusedGrain);
  }
  std::size_t tile_bytes() const { return (steps_.size() - 1) * kFusedBlock * sizeof(float); }

  void run_block(const KernelCall& call, float* results, std::int64_t begin, std::int64_t n) const {
    auto read = [&](const Source& source) -> VectorOperand {
      if (!source.is_input) return {results + source.index * kFusedBlock, false};
      const float* input = call.inputs[source.index].as<float>();
      return {source.repeats ? input : input + begin, source.repeats};
    };
    for (std::size_t j = 0; j < steps_.size(); ++j) {
      const bool last = j + 1 == steps_.size();
      float* y = last ? call.outputs[0].as<float>() + begin : results + j * kFusedBlock;
      const auto& [a, b, c] = steps_[j].operands;
      compute_elements(steps_[j].function, steps_[j].number, {read(a), read(b), read(c)}, y, n);
    }
  }

  const std::vector<Step> steps_;
  const std::int64_t elements_;
  ThreadPool& pool_;
};

std::unique_ptr<Kernel> make_fused_of(const Node& node, std::string_view program,
                                      ThreadPool& pool) {
  if (node.outputs()[0].dtype != DType::kFloat32) return nullptr;
  return std::make_unique<FusedKernel>(node, program, pool);
}

std::unique_ptr<Kernel> make_fused(const Node& node, ThreadPool& pool) {
  return make_fused_of(node, node.attributes().get<std::string>("program"), pool);
}

// The operands of where() are those of a program: of the output's shape, or of one element.
std::unique_ptr<Kernel> make_where(const Node& node, ThreadPool& pool) {
  return make_fused_of(node, "where i0 i1 i2\n", pool);
}

}  // namespace

void add_cpu_fused_kernels(KernelTable& table) {
  table.add("fused_elementwise", &make_fused);
  table.add("where", &make_where);
}

}  // namespace paceline
