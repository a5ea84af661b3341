#include "kernels/cpu/vector_program.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

namespace paceline {
namespace {

constexpr std::uint8_t kX = 0, kY = 1, kOut = 2;

std::vector<float> counted(std::size_t n, float first) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), first);
  return values;
}

// Returns the third array after the program has run on x = 1, 2, … and y = 3, 4, …
std::vector<float> output_of(const VectorProgram& program, std::size_t n) {
  std::vector<float> x = counted(n, 1), y = counted(n, 3), out(n);
  const std::array<float*, 3> arrays = {x.data(), y.data(), out.data()};
  program.run(arrays, n);
  return out;
}

using Formula = std::function<float(float x, float y)>;

void expect_output(const VectorProgram& program, const Formula& formula) {
  for (const std::size_t n : {0, 1, 3, 4, 15, 16, 17, 127, 128, 129, 1000}) {
    const std::vector<float> out = output_of(program, n);
    for (std::size_t i = 0; i < n; ++i) {
      EXPECT_FLOAT_EQ(out[i], formula(float(i + 1), float(i + 3))) << i << " of " << n;
    }
  }
}

void expect_op(VectorOp op, const Formula& formula) {
  VectorProgram program(3);
  program.add({.op = op, .a = kX, .b = kY, .result = kOut, .number = 0.5f});
  expect_output(program, formula);
}

TEST(VectorProgram, KnowsItsOps) {
  expect_op(VectorOp::kCopy, [](float x, float) { return x; });
  expect_op(VectorOp::kScale, [](float x, float) { return x * 0.5f; });
  expect_op(VectorOp::kAdd, [](float x, float y) { return x + y; });
  expect_op(VectorOp::kAddScaled, [](float x, float y) { return x + y * 0.5f; });
  expect_op(VectorOp::kSub, [](float x, float y) { return x - y; });
  expect_op(VectorOp::kSubScaled, [](float x, float y) { return x - y * 0.5f; });
  expect_op(VectorOp::kSubFrom, [](float x, float y) { return y - x; });
  expect_op(VectorOp::kMul, [](float x, float y) { return x * y; });
  expect_op(VectorOp::kDiv, [](float x, float y) { return x / y; });
  expect_op(VectorOp::kDivInto, [](float x, float y) { return y / x; });
  expect_op(VectorOp::kSquare, [](float x, float) { return x * x; });
  expect_op(VectorOp::kSqrt, [](float x, float) { return std::sqrt(x); });
}

TEST(VectorProgram, CallsOtherFunctions) {
  VectorProgram program(3);
  program.add({.op = VectorOp::kFunction,
               .a = kX,
               .b = kY,
               .result = kOut,
               .function = {.binary = BinaryFunction::kMinimum}});
  program.add({.op = VectorOp::kFunction,
               .a = kOut,
               .b = kX,
               .c = kY,
               .result = kOut,
               .function = {}});  // none stands for `where`
  expect_output(program, [](float x, float) { return x; });
}

TEST(VectorProgram, KeepsValuesInRegistersInCellsAndInItsArrays) {
  VectorProgram program(3);
  const std::uint8_t ten = program.add_cell(10), kept = program.add_cell();
  program.add({.op = VectorOp::kAdd, .a = kX, .b = ten});
  program.add({.op = VectorOp::kMul, .b = kY, .result = kept});  // (x + 10)·y
  program.add({.op = VectorOp::kSub, .a = kX, .b = ten, .result = kX});
  program.add({.op = VectorOp::kDivInto, .a = kX, .b = kept, .result = kOut});
  expect_output(program, [](float x, float y) { return (x + 10) * y / (x - 10); });
}

// A product that is rounded before the addition gives other bits than one that is not.
TEST(VectorProgram, GivesTheSameBitsWhereverAnElementLies) {
  VectorProgram program(3);
  program.add({.op = VectorOp::kScale, .a = kX, .number = 0.1f});
  program.add({.op = VectorOp::kAddScaled, .b = kY, .result = kOut, .number = 1.0f / 3});
  const std::vector<float> whole = output_of(program, 1000);
  std::vector<float> x = counted(1000, 1), y = counted(1000, 3), out(1000);
  for (std::size_t begin = 0, n = 1; begin < 1000; begin += n, n = std::min(n + 7, 1000 - begin)) {
    const std::array<float*, 3> arrays = {x.data() + begin, y.data() + begin, out.data() + begin};
    program.run(arrays, n);
  }
  EXPECT_EQ(out, whole);
}

}  // namespace
}  // namespace paceline
