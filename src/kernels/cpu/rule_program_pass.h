// A rule of one's own in the cpu kernels.
#pragma once

#include <cstddef>
#include <span>

#include "graph/rule_program.h"
#include "kernels/rule_kernel.h"

namespace paceline {

/// One pass of a program over elements, interpreted over blocks so short that the results of all
/// steps stay in the first-level cache. Allocates nothing.
class RuleProgramPass {
 public:
  /// For one contribution. Both must outlive it.
  RuleProgramPass(const RuleProgram& program, const RuleStep& step);
  /// Renews n elements and their slots: those of the program, then the average, if there is one.
  void run(float* values, std::span<float* const> slots, const float* gradient,
           std::size_t n) const;

 private:
  struct Block;
  void run_block(const Block& block) const;

  const RuleProgram& program_;
  const RuleStep& step_;
  std::array<float, RuleProgram::kScalarInputs + CustomRule::kMostSteps> scalars_;
};

}  // namespace paceline
