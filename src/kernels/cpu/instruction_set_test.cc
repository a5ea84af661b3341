#include "kernels/cpu/instruction_set.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/cpu/vector_math.h"

namespace paceline {
namespace {

TEST(InstructionSetTest, TheBestIsUsedUntilItIsLimited) {
  const std::vector<std::string_view> sets = instruction_sets();
  EXPECT_EQ(sets.back(), "scalar");
  for (const std::string_view name : sets) {
    EXPECT_TRUE(limit_instruction_set(name));
    EXPECT_EQ(instruction_set(), name);
    float x[3] = {-1, 2, -3};
    vector_unary(UnaryFunction::kRelu, 0, x, x, 3);
    EXPECT_EQ(std::max({x[0], x[2]}), 0) << name;
    EXPECT_EQ(x[1], 2) << name;
  }
  EXPECT_TRUE(limit_instruction_set(sets.front()));
}

TEST(InstructionSetTest, AnotherMachinesIsNoneAndChangesNothing) {
  const std::string_view found = instruction_set();
  ASSERT_TRUE(limit_instruction_set("scalar"));
  EXPECT_FALSE(limit_instruction_set("AVX-1024"));
  EXPECT_EQ(instruction_set(), "scalar");
  EXPECT_TRUE(limit_instruction_set(found));
}

TEST(InstructionSetTest, OnednnNamesItsOwn) { EXPECT_FALSE(onednn_instruction_set().empty()); }

}  // namespace
}  // namespace paceline
