#include "graph/rule_program.h"

#include <gtest/gtest.h>

#include <string>

#include "base/testing/error_of.h"
#include "paceline/error.h"

namespace paceline {
namespace {

// w ← w − lr·m', m' = 0.9·m + g.
constexpr const char* kMomentum =
    "rule heavy_ball\n"
    "slot m 0\n"
    "scalar number 0.90000000000000002\n"
    "element mul i2 i5\n"
    "element add t0 i1\n"
    "element mul t1 i3\n"
    "element sub i0 t2\n"
    "result t3\n"
    "result t1\n";

TEST(RuleProgram, ComesBackFromItsText) {
  const RuleProgram program = RuleProgram::parse(kMomentum);
  EXPECT_EQ(program.name, "heavy_ball");
  ASSERT_EQ(program.slots.size(), 1U);
  EXPECT_EQ(program.slots[0].name, "m");
  EXPECT_EQ(program.scalar_count(), 3U);
  EXPECT_FALSE(program.reads_count());
  EXPECT_EQ(program.text(), kMomentum);
  EXPECT_EQ(program, RuleProgram::parse(program.text()));
}

TEST(RuleProgram, KnowsThatTheCountIsRead) {
  EXPECT_TRUE(RuleProgram::parse("rule a\nelement mul i1 i3\nresult t0\n").reads_count());
  EXPECT_TRUE(
      RuleProgram::parse("rule a\nscalar exp i1\nelement mul i1 i4\nresult t0\n").reads_count());
  EXPECT_FALSE(RuleProgram::parse("rule a\nelement mul i1 i2\nresult t0\n").reads_count());
}

// w ← w − (g·gᵀ)·g.
constexpr const char* kProducts =
    "rule products\n"
    "whole\n"
    "matrix matmul i1 i1 2\n"
    "matrix matmul t0 i1 0\n"
    "element sub i0 t1\n"
    "result t2\n";

TEST(RuleProgram, OfAWholeVariableComesBackFromItsText) {
  const RuleProgram program = RuleProgram::parse(kProducts);
  EXPECT_TRUE(program.whole);
  EXPECT_EQ(program.text(), kProducts);
  EXPECT_FALSE(RuleProgram::parse(kMomentum).whole);
}

TEST(RuleProgram, KnowsTheSizesOfAWholeVariable) {
  const RuleProgram program = RuleProgram::parse(kProducts);
  using Extent = RuleProgram::Extent;
  EXPECT_EQ(program.step_extents({20, 3}), (std::vector<Extent>{{20, 20}, {20, 3}, {20, 3}}));
  EXPECT_EQ(program.most_elements({20, 3}), 60 + 400 + 60);
}

std::string refusal(const std::string& text) {
  return error_of(ErrorCode::kInvalidArgument, [&] { RuleProgram::parse(text); });
}

TEST(RuleProgram, RefusesWhatIsNone) {
  EXPECT_EQ(refusal("rule adam\nelement mul i0 i1\nresult t0\n"),
            "[rule] adam: a rule of the library has this name");
  for (const char* text : {"",
                           "rule \n",
                           "rule A\nresult i0\n",
                           "rule a\n",
                           "rule a\nresult t0\n",
                           "rule a\nresult i1\n",
                           "rule a\nresult i0\nresult i0\n",
                           "rule a\nslot m x\nresult i0\nresult i2\n",
                           "rule a\nslot t 0\nresult i0\nresult i2\n",
                           "rule a\nslot m 0\nslot m 0\nresult i0\nresult i2\nresult i3\n",
                           "rule a\nslot m nan\nresult i0\nresult i2\n",
                           "rule a\nelement mul i0 i4\nresult t0\n",
                           "rule a\nelement number 3\nresult t0\n",
                           "rule a\nscalar mul i0 i2\nresult i0\n",
                           "rule a\nscalar number\nresult i0\n",
                           "rule a\nelement matmul i0 i1\nresult t0\n",
                           "rule a\nelement mul i0 t0\nresult t0\n",
                           "rule a\nwhat is this\nresult i0\n",
                           "rule a\nresult \n",
                           "rule a\nrule b\nresult i0\n"}) {
    EXPECT_NE(refusal(text), "") << text;
  }
}

TEST(RuleProgram, OfAWholeVariableRefusesWhatDoesNotFit) {
  EXPECT_EQ(refusal("rule a\nwhole\nmatrix matmul i0 i1 0\nresult t0\n"),
            "[rule] a: matmul of (2,3) and (2,3), in a variable of (2,3)");
  EXPECT_EQ(refusal("rule a\nwhole\nmatrix matmul i0 i1 2\nresult t0\n"),
            "[rule] a: result 0 is (2,2), and the variable is (2,3)");
  for (const char* text :
       {"rule a\nmatrix matmul i0 i1 2\nresult i0\n",
        "rule a\nwhole\nmatrix matmul i0\nresult i0\n",
        "rule a\nwhole\nmatrix matmul i0 i1 4\nresult i0\n",
        "rule a\nwhole\nmatrix matmul i0 i1 -1\nresult i0\n",
        "rule a\nwhole\nmatrix matmul i0 i1 2 3\nresult i0\n",
        "rule a\nwhole\nmatrix matmul i0 i9 2\nresult i0\n",
        "rule a\nwhole\nmatrix reduce_sum i0 i1\nresult i0\n",
        "rule a\nwhole\nmatrix square i0\nresult i0\n", "rule a\nwhole\nmatrix \nresult i0\n",
        "rule a\nwhole\nmatrix reduce_sum i0\nresult t0\n"}) {
    EXPECT_NE(refusal(text), "") << text;
  }
}

TEST(RuleProgram, IsBounded) {
  std::string many = "rule a\n";
  for (std::size_t i = 0; i <= CustomRule::kMostSteps; ++i) many += "element square i0\n";
  EXPECT_EQ(refusal(many + "result t0\n"),
            "[rule] a: it has 65 steps of a kind; at most 64 are possible");
  EXPECT_NE(refusal("rule a\nslot b 0\nslot c 0\nslot d 0\nslot e 0\nresult i0\nresult i2\nresult "
                    "i3\nresult i4\nresult i5\n"),
            "");
}

}  // namespace
}  // namespace paceline
