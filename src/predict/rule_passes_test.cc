#include "predict/rule_passes.h"

#include <gtest/gtest.h>

#include "predict/memory_passes.h"

namespace paceline {
namespace {

TEST(RulePasses, MoveValuesAndSlotsBothWaysAndReadTheGradient) {
  RulePasses passes(2);
  const auto array = double(passes.elements() * sizeof(float));
  EXPECT_GT(2 * array, double(cache_bytes()));
  EXPECT_EQ(passes.bytes(Sgd{}), 3 * array);
  EXPECT_EQ(passes.bytes(Adam{}), 7 * array);
  passes.apply(Adam{});
  passes.apply(Sgd{});
}

}  // namespace
}  // namespace paceline
