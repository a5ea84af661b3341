// A rule that needs its whole variable: it runs the steps of its program one after another, each
// for all elements.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/buffer.h"
#include "base/check.h"
#include "graph/rule_program.h"
#include "kernels/cpu/element_function.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/grains.h"
#include "kernels/rule_kernel.h"
#include "kernels/rule_scalars.h"

namespace paceline {
namespace {

using Extent = RuleProgram::Extent;

/// Memory for the results of steps, which a thread keeps for its next contributions. Getting the
/// memory from the system anew, page by page, would take longer than a step.
class StepMemory {
 public:
  static StepMemory& of_this_thread() {
    thread_local StepMemory memory;
    return memory;
  }

  /// Returns memory of at least `bytes` bytes, which may have any values.
  Buffer take(std::size_t bytes) {
    // free_ is sorted by size.
    auto found = std::ranges::lower_bound(free_, bytes, {}, &Buffer::size);
    if (found == free_.end()) {
      if (!free_.empty()) free_.pop_back();  // keeps no more buffers than were in use at once
      return Buffer(bytes);
    }
    Buffer taken = std::move(*found);
    free_.erase(found);
    return taken;
  }
  void give_back(Buffer memory) {
    if (memory.size() == 0) return;
    const auto at = std::ranges::lower_bound(free_, memory.size(), {}, &Buffer::size);
    free_.insert(at, std::move(memory));
  }

 private:
  std::vector<Buffer> free_;
};

class WholePass {
 public:
  WholePass(const RuleProgram& program, const RuleStep& step, const RuleWhole& whole,
            ThreadPool& pool)
      : program_(program),
        step_(step),
        whole_(whole),
        pool_(pool),
        variable_{whole.rows, whole.columns},
        extents_(program.step_extents(variable_)),
        results_(extents_.size()),
        gradient_(whole.gradient) {
    const RuleScalars scalars = rule_scalars(program, step);
    std::ranges::transform(scalars.begin(),
                           scalars.begin() + std::ptrdiff_t(program.scalar_count()),
                           scalars_.begin(), [](double scalar) { return float(scalar); });
  }

  void run() {
    scale_gradient();
    if (program_.by_code) run_code();
    for (std::size_t j = 0; j < extents_.size(); ++j) {
      results_[j] = memory_.take(std::size_t(extents_[j].elements()) * sizeof(float));
      compute(j);
      for (std::size_t i = 0; i <= j; ++i) {
        if (std::max(program_.last_reads[i], i) == j) give_back(results_[i]);
      }
    }
    put_results();
    for (Buffer& result : results_) give_back(result);
    give_back(scaled_);
    if (step_.average_decay > 0) renew_average();
  }

 private:
  void run_code() {
    if (!program_.code) program_.refuse("its code is in another process");
    program_.code({.value = whole_.values,
                   .slots = whole_.slots.first(program_.slots.size()),
                   .gradient = gradient_,
                   .elements = variable_.elements(),
                   .learning_rate = step_.learning_rate,
                   .count = step_.count});
  }

  float* result(int step) const {
    return reinterpret_cast<float*>(results_[std::size_t(step)].data());
  }

  void give_back(Buffer& memory) { memory_.give_back(std::exchange(memory, Buffer())); }

  void scale_gradient() {
    if (step_.clip_scale == 1 && step_.weight_decay == 0) return;
    scaled_ = memory_.take(std::size_t(variable_.elements()) * sizeof(float));
    float* const scaled = reinterpret_cast<float*>(scaled_.data());
    for_all([&](std::int64_t i) {
      scaled[i] = step_.clip_scale * whole_.gradient[i] + step_.weight_decay * whole_.values[i];
    });
    gradient_ = scaled;
  }

  const float* operand(const FusedOperand& operand) const {
    if (operand.kind == FusedOperand::Kind::kStep) return result(operand.index);
    if (operand.index == RuleProgram::kValue) return whole_.values;
    if (operand.index == RuleProgram::kGradient) return gradient_;
    const std::size_t slot = std::size_t(operand.index) - RuleProgram::kFirstSlot;
    const std::size_t slots = program_.slots.size();
    return slot < slots ? whole_.slots[slot] : &scalars_[slot - slots];
  }
  Extent extent(const FusedOperand& operand) const {
    return program_.operand_extent(operand, variable_, extents_);
  }

  void compute(std::size_t j) {
    const FusedStep& step = program_.element_steps[j];
    if (step.op == RuleProgram::kMatmul) return multiply(step, int(j));
    if (step.op == RuleProgram::kSum) {
      const FusedOperand& of = step.operands[0];
      *result(int(j)) = float(vector_sum(operand(of), extent(of).elements()));
      return;
    }
    pool_.parallel_for(
        extents_[j].elements(), kElementsGrain, [&](std::int64_t begin, std::int64_t end) {
          std::array<VectorOperand, 3> operands;
          for (std::size_t k = 0; k < step.operands.size(); ++k) {
            const bool repeats = extent(step.operands[k]).elements() == 1;
            operands[k] = {operand(step.operands[k]) + (repeats ? 0 : begin), repeats};
          }
          compute_elements(element_function_at(program_.element_ops[j]), float(step.number),
                           operands, result(int(j)) + begin, end - begin);
        });
  }

  void multiply(const FusedStep& step, int j) {
    const bool transpose_a = RuleProgram::transposes(step, 0);
    const Extent of_a = extent(step.operands[0]), product = extents_[std::size_t(j)];
    const std::int64_t depth = transpose_a ? of_a.rows : of_a.columns;
    Gemm gemm(GemmShape::packed(product.rows, product.columns, depth, transpose_a,
                                RuleProgram::transposes(step, 1)),
              pool_);
    Buffer scratch = memory_.take(gemm.scratch_bytes());
    gemm.run(operand(step.operands[0]), operand(step.operands[1]), result(j), scratch.span());
    give_back(scratch);
  }

  void put_results() {
    const std::int64_t n = variable_.elements();
    for (std::size_t i = 0; i < program_.results.size(); ++i) {
      const FusedOperand& from = program_.results[i];
      if (from.kind == FusedOperand::Kind::kInput) continue;
      std::copy_n(result(from.index), n, i == 0 ? whole_.values : whole_.slots[i - 1]);
    }
  }

  void renew_average() {
    float* const average = whole_.slots.back();
    const float decay = step_.average_decay;
    for_all(
        [&](std::int64_t i) { average[i] = decay * average[i] + (1 - decay) * whole_.values[i]; });
  }

  template <typename F>
  void for_all(F&& function) {
    pool_.parallel_for(variable_.elements(), kElementsGrain,
                       [&](std::int64_t begin, std::int64_t end) {
                         for (std::int64_t i = begin; i < end; ++i) function(i);
                       });
  }

  const RuleProgram& program_;
  const RuleStep& step_;
  const RuleWhole& whole_;
  ThreadPool& pool_;
  const Extent variable_;
  const std::vector<Extent> extents_;
  StepMemory& memory_ = StepMemory::of_this_thread();
  std::vector<Buffer> results_;  // the results of steps; each is given back after its last read
  Buffer scaled_;
  const float* gradient_;
  std::array<float, RuleProgram::kScalarInputs + CustomRule::kMostSteps> scalars_;
};

}  // namespace

void apply_rule_to_whole(const Rule& rule, const RuleStep& step, const RuleWhole& whole,
                         ThreadPool& pool) {
  PACELINE_CHECK(rule.whole());
  if (whole.rows * whole.columns == 0) return;
  WholePass(*rule.program(), step, whole, pool).run();
}

}  // namespace paceline
