// Tests users' own rules, from the values of their update to the program that is sent.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "base/testing/error_of.h"
#include "graph/rule_program.h"
#include "paceline/error.h"
#include "paceline/ops.h"
#include "paceline/rule.h"

namespace paceline {
namespace {

using Update = std::function<RuleUpdate(const RuleTerms&)>;

Rule rule_of(Update update, std::vector<SlotSpec> slots = {}) {
  return CustomRule{
      .name = "own", .learning_rate = 0.5f, .slots = std::move(slots), .update = std::move(update)};
}

std::string program_of(Update update, std::vector<SlotSpec> slots = {}) {
  return rule_of(std::move(update), std::move(slots)).program()->text();
}

TEST(CustomRule, IsTheStepsOfItsUpdate) {
  EXPECT_EQ(program_of([](const RuleTerms& r) {
              return RuleUpdate{r.value - r.learning_rate * r.gradient, {}};
            }),
            "rule own\nelement mul i2 i1\nelement sub i0 t0\nresult t1\n");
}

// 1 − exp(−0.5·t) is a number that is computed once, not for each element.
TEST(CustomRule, ComputesNumbersApart) {
  const Rule rule = rule_of([](const RuleTerms& r) {
    return RuleUpdate{r.value - r.gradient / (1 - exp(r.count * -0.5)), {}};
  });
  EXPECT_EQ(rule.program()->scalar_steps.size(), 4U);
  EXPECT_EQ(rule.program()->element_steps.size(), 2U);
  ASSERT_EQ(rule.slots().size(), 1U);  // the count is saved
  EXPECT_EQ(rule.slots()[0].name, "t");
  EXPECT_TRUE(rule.slots()[0].scalar);
}

TEST(CustomRule, MayLeaveASlotAloneOrExchangeWithIt) {
  EXPECT_EQ(program_of(
                [](const RuleTerms& r) {
                  return RuleUpdate{r.value, r.slots};
                },
                {{"m"}}),
            "rule own\nslot m 0\nresult i0\nresult i2\n");
  EXPECT_EQ(
      program_of(
          [](const RuleTerms& r) {
            return RuleUpdate{r.slots[0], {r.value}};
          },
          {{"m", false, 0.25f}}),
      "rule own\nslot m 0.25\nelement scale i2 1\nelement scale i0 1\nresult t0\nresult t1\n");
}

TEST(CustomRule, IsEqualToOneOfTheSameProgram) {
  const auto rule = [](double factor) {
    return rule_of([=](const RuleTerms& r) { return RuleUpdate{r.value * factor, {}}; });
  };
  EXPECT_EQ(rule(0.5), rule(0.5));
  EXPECT_NE(rule(0.5), rule(0.25));
  EXPECT_NE(rule(0.5), Rule(Sgd{0.5f}));
  EXPECT_EQ(rule(0.5).name(), "own");
}

std::string refusal(const Update& update, const std::vector<SlotSpec>& slots = {}) {
  return error_of(ErrorCode::kInvalidArgument, [&] { rule_of(update, slots); });
}

Rule whole_rule_of(Update update) {
  return CustomRule{.name = "own", .update = std::move(update), .whole = true};
}

TEST(CustomRule, OfAWholeVariableHasProductsAndSums) {
  const Rule rule = whole_rule_of([](const RuleTerms& r) {
    const Value g = r.gradient / sqrt(reduce_sum(square(r.gradient)));
    return RuleUpdate{r.value - r.learning_rate * matmul(matmul(g, g, false, true), g), {}};
  });
  EXPECT_TRUE(rule.whole());
  EXPECT_EQ(rule.program()->text(),
            "rule own\nwhole\nelement square i1\nmatrix reduce_sum t0\nelement sqrt t1\n"
            "element div i1 t2\nmatrix matmul t3 t3 2\nmatrix matmul t4 t3 0\nelement mul i2 t5\n"
            "element sub i0 t6\nresult t7\n");
  EXPECT_FALSE(rule_of([](const RuleTerms& r) { return RuleUpdate{r.value, {}}; }).whole());
}

TEST(CustomRule, OfAWholeVariableRefusesWhatFitsNotEverySize) {
  EXPECT_NE(error_of(ErrorCode::kInvalidArgument,
                     [] {
                       whole_rule_of([](const RuleTerms& r) {
                         return RuleUpdate{matmul(r.value, r.value, false, true), {}};
                       });
                     }),
            "");
  EXPECT_NE(error_of(ErrorCode::kInvalidArgument,
                     [] {
                       whole_rule_of([](const RuleTerms& r) {
                         return RuleUpdate{r.value - reduce_mean(r.value, {0}), {}};
                       });
                     }),
            "");
}

TEST(CustomRule, RefusesWhatIsNotElementWise) {
  EXPECT_EQ(refusal([](const RuleTerms& r) {
              return RuleUpdate{r.value - reduce_sum(r.gradient), {}};
            }),
            "[rule] own: op reduce_sum is not element-wise over the value, its slots and numbers");
  EXPECT_NE(refusal([](const RuleTerms& r) {
              return RuleUpdate{r.value * r.value.graph().input("x", {2}), {}};
            }),
            "");
  EXPECT_NE(refusal([](const RuleTerms&) { return RuleUpdate{}; }), "");
  EXPECT_NE(refusal([](const RuleTerms& r) { return RuleUpdate{r.value, {}}; }, {{"m"}}), "");
  EXPECT_EQ(refusal(nullptr), "[rule] own: it has no update");
  EXPECT_NE(error_of(ErrorCode::kInvalidArgument,
                     [] {
                       Rule(CustomRule{
                           .name = "own", .learning_rate = -1, .update = [](const RuleTerms& r) {
                             return RuleUpdate{r.value, {}};
                           }});
                     }),
            "");
}

}  // namespace
}  // namespace paceline
