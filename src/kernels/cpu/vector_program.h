// Element-wise programs that are interpreted with the values of several vectors in registers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cpu/element_function.h"

namespace paceline {

/// The computation of an instruction, from its operands a, b and c and its number n.
enum class VectorOp : std::uint8_t {
  kCopy,       // a
  kScale,      // a·n
  kAdd,        // a + b
  kAddScaled,  // a + b·n
  kSub,        // a − b
  kSubScaled,  // a − b·n
  kSubFrom,    // b − a
  kMul,        // a·b
  kDiv,        // a ÷ b
  kDivInto,    // b ÷ a
  kSquare,     // a²
  kSqrt,       // √a
  kFunction,   // the function's value
};

/// Reads and writes places: the arrays of a run, then the cells of the program.
struct VectorInstruction {
  /// As `a`: the result of the instruction before, still in registers. As `result`: it stays there.
  static constexpr std::uint8_t kInRegisters = 255;

  VectorOp op = VectorOp::kCopy;
  std::uint8_t a = kInRegisters, b = 0, c = 0;
  std::uint8_t result = kInRegisters;
  float number = 0;
  ElementFunction function = {};  // of kFunction
};

/// Instructions in their order. Between them only one value is in registers: it is the result of
/// the last one. Others lie in cells, which stay in the first-level cache. Allocates nothing.
class VectorProgram {
 public:
  static constexpr std::size_t kMostArrays = 8, kMostCells = 160, kMostInstructions = 160;

  explicit VectorProgram(std::size_t arrays) : arrays_(arrays) {}

  /// Adds a place that holds the number for each element, until an instruction writes to it.
  std::uint8_t add_cell(float number = 0);
  /// Adds an instruction. Its result may still be changed through the reference, which stays valid.
  VectorInstruction& add(const VectorInstruction& instruction);

  /// Runs over n elements of each array. What becomes of an element does not depend on its place in
  /// the arrays.
  void run(std::span<float* const> arrays, std::size_t n) const;

  std::size_t arrays() const { return arrays_; }
  std::span<const float> cells() const { return {cells_.data(), cell_count_}; }
  std::span<const VectorInstruction> instructions() const {
    return {instructions_.data(), instruction_count_};
  }

 private:
  std::size_t arrays_, cell_count_ = 0, instruction_count_ = 0;
  std::array<float, kMostCells> cells_;
  std::array<VectorInstruction, kMostInstructions> instructions_;
};

}  // namespace paceline
