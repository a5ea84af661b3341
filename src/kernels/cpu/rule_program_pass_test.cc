#include "kernels/cpu/rule_program_pass.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/philox.h"
#include "kernels/naive/rules.h"
#include "kernels/testing/custom_rules.h"

namespace paceline {
namespace {

// Random numbers that a seed determines.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : seed_(seed) {}
  int roll(int sides) { return int(philox(seed_, thrown_++, 0)[0] % std::uint32_t(sides)); }

 private:
  std::uint64_t seed_, thrown_ = 0;
};

constexpr int kSlots = 2, kInputs = 2 + kSlots + 3;  // three numbers: learning rate, count and 2

std::string any_operand(Dice& dice, int steps) {
  const int which = dice.roll(kInputs + steps);
  return which < kInputs ? fmt::format("i{}", which) : fmt::format("t{}", which - kInputs);
}

// Returns a program of ops that are exact on small whole numbers.
std::string any_program(Dice& dice) {
  std::string text = "rule any\nslot a 1\nslot b 2\nscalar number 2\n";
  const int steps = 1 + dice.roll(8);
  for (int j = 0; j < steps; ++j) {
    constexpr std::array kOps = {"add", "sub", "sub", "scale", "mul", "maximum", "where"};
    const std::string op = kOps[std::size_t(dice.roll(kOps.size()))];
    text += "element " + op + " " + any_operand(dice, j);
    if (op == "scale") {
      text += fmt::format(" {}", dice.roll(3) - 1);
    } else if (op == "mul") {
      text += fmt::format(" i{}", kInputs - 1);
    } else {
      text += " " + any_operand(dice, j);
    }
    if (op == "where") text += " " + any_operand(dice, j);
    text += "\n";
  }
  for (int i = 0; i <= kSlots; ++i) {
    const bool stays = dice.roll(4) == 0;
    text += stays ? fmt::format("result i{}\n", i == 0 ? 0 : i + 1)
                  : fmt::format("result t{}\n", dice.roll(steps));
  }
  return text;
}

struct Variable {
  std::vector<float> value, a, b, average;
  bool operator==(const Variable&) const = default;
};

Variable any_variable(Dice& dice, std::size_t size) {
  Variable made;
  for (std::vector<float>* array : {&made.value, &made.a, &made.b, &made.average}) {
    array->resize(size);
    std::ranges::generate(*array, [&] { return float(dice.roll(9) - 4); });
  }
  return made;
}

template <typename Apply>
Variable updated(Variable variable, const Rule& rule, const RuleStep& step,
                 const std::vector<float>& gradient, const Apply& apply) {
  std::vector<float*> slots = {variable.a.data(), variable.b.data()};
  if (step.average_decay > 0) slots.push_back(variable.average.data());
  apply(rule, step, {variable.value, slots, gradient});
  return variable;
}

// Results stay in registers, steps are joined, and results overwrite memory; nothing may be
// overwritten too early.
TEST(RuleProgramPass, ComputesAnyProgramAsTheNaiveLoopDoes) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    Dice dice(seed);
    const std::string text = any_program(dice);
    const Rule rule(std::uint8_t(RuleKind::kCustom), 2, {}, text);
    const RuleStep step{.learning_rate = 2,
                        .clip_scale = dice.roll(2) == 0 ? 1.0f : 2.0f,
                        .weight_decay = dice.roll(2) == 0 ? 0.0f : 1.0f,
                        .count = 3,
                        .average_decay = dice.roll(2) == 0 ? 0.0f : 0.5f};
    const Variable before = any_variable(dice, 150);
    const std::vector<float> gradient = any_variable(dice, 150).value;
    ASSERT_EQ(updated(before, rule, step, gradient, &apply_rule),
              updated(before, rule, step, gradient, &apply_rule_naively))
        << text;
  }
}

// Two of Adam's 12 steps are products with a number, and become part of a sum. ε has a cell, and so
// has the root that it is added to.
TEST(RuleProgramPass, TakesFewInstructionsAndCellsForAdam) {
  const Rule adam = written_adam();
  ASSERT_EQ(adam.program()->element_steps.size(), 12U);
  const RuleProgramPass pass(*adam.program(), {});
  EXPECT_EQ(pass.vectors().instructions().size(), 10U);
  EXPECT_EQ(pass.vectors().cells().size(), 2U);
}

}  // namespace
}  // namespace paceline
