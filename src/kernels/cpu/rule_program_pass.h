// A user's rule in the cpu kernels.
#pragma once

#include <cstddef>
#include <span>

#include "graph/rule_program.h"
#include "kernels/cpu/vector_program.h"
#include "kernels/rule_kernel.h"

namespace paceline {

/// One pass of a rule's program over elements. Allocates nothing.
class RuleProgramPass {
 public:
  /// Prepares the pass for one contribution.
  RuleProgramPass(const RuleProgram& program, const RuleStep& step);
  /// Updates n elements and their slots: those of the program, then the average, if there is one.
  void run(float* values, std::span<float* const> slots, const float* gradient,
           std::size_t n) const;

  const VectorProgram& vectors() const { return vectors_; }

 private:
  VectorProgram vectors_;
};

}  // namespace paceline
