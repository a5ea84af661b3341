// Element-wise programs, interpreted with the values of several vectors in registers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cpu/element_function.h"

namespace paceline {

/// How an instruction computes its result from its operands a, b and c and its number n.
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

/// An instruction reads and writes places. Their numbers count the arrays of a run first, then the
/// cells of the program.
struct VectorInstruction {
  /// As `a`, this is the result of the instruction before, still in registers. As `result`, it
  /// leaves the result there.
  static constexpr std::uint8_t kInRegisters = 255;

  VectorOp op = VectorOp::kCopy;
  std::uint8_t a = kInRegisters, b = 0, c = 0;
  std::uint8_t result = kInRegisters;
  float number = 0;
  ElementFunction function = {};  // for kFunction
};

/// Instructions in order. Between two of them, only the last one's result is in registers. Other
/// values lie in cells, which stay in the first-level cache. Allocates nothing.
class VectorProgram {
 public:
  static constexpr std::size_t kMostArrays = 8, kMostCells = 160, kMostInstructions = 160;

  explicit VectorProgram(std::size_t arrays) : arrays_(arrays) {}

  /// Adds a cell and returns its place. The cell holds `number` for each element until an
  /// instruction writes to it.
  std::uint8_t add_cell(float number = 0);
  /// Adds an instruction. The caller may still change its result through the reference, which stays
  /// valid.
  VectorInstruction& add(const VectorInstruction& instruction);

  /// Runs over n elements of each array. An element's result does not depend on its place in the
  /// arrays.
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
