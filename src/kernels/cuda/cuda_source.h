// CUDA source of element-wise programs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "graph/fused_program.h"

namespace paceline {

/// How a program is computed in float32 for n elements: by a kernel "elementwise" of blocks of
/// kBlock threads, whose parameters are the output, the inputs, the number of groups of four
/// elements that are read and written at once (all pointers must then be multiples of 16), and n.
/// `is_one[k]`: input k has one element, which counts everywhere.
struct ElementwiseSource {
  static constexpr unsigned kBlock = 256;
  static constexpr const char* kFunction = "elementwise";
};
std::string elementwise_source(std::span<const FusedStep> program, const std::vector<bool>& is_one);

}  // namespace paceline
