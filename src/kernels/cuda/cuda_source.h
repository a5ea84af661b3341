// CUDA source of element-wise programs.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "graph/fused_program.h"
#include "paceline/tensor.h"

namespace paceline {

/// Source that computes a program in float32 for n elements: a kernel "elementwise" in blocks of
/// kBlock threads. Its parameters are the output, the inputs, the number of groups of four elements
/// that are read and written at once (all pointers must then be multiples of 16), and n.
/// `places[k]` says which element of input k belongs to element i of the output: if it is empty,
/// element i; else it is an expression in i. Groups of four are only for programs whose places are
/// all empty or "0".
struct ElementwiseSource {
  static constexpr unsigned kBlock = 256;
  static constexpr const char* kFunction = "elementwise";
};
std::string elementwise_source(std::span<const FusedStep> program,
                               const std::vector<std::string>& places);

/// Returns an expression that computes a step in float32 from its operands, which are names.
std::string step_expression(const FusedStep& step, const std::array<std::string, 3>& operands);

/// Returns the entry of `places` for an input of shape `from` that is broadcast to `to`.
std::string broadcast_place(const Shape& from, const Shape& to);

}  // namespace paceline
