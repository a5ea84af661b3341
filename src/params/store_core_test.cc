#include "params/store_core.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "paceline/error.h"
#include "params/placement.h"

namespace paceline {
namespace {

using testing::HasSubstr;

// Half of it would be no memory at all.
TEST(StoreCore, AVariableOfTwoPsIsMappedWhenBothHaveSharedTheirsAndNoneSharesTwice) {
  const std::vector<VariableSpec> variables = {{.name = "w", .shape = {2048, 512}}};
  StoreCore core(variables, 2, std::chrono::seconds(1));
  ASSERT_EQ(core.pieces_of(0).size(), 2U);
  const auto memory_of = [&](int ps) {
    return SharedMemory::create(shard_layout(core.variables(), core.pieces(), ps).bytes);
  };
  core.map(0, memory_of(0));
  try {
    core.map(0, memory_of(0));
    FAIL() << "taken twice";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
    EXPECT_THAT(error.what(), HasSubstr("twice"));
  }
  EXPECT_EQ(core.mapped(0), nullptr);
  core.map(1, memory_of(1));
  EXPECT_NE(core.mapped(0), nullptr);
}

}  // namespace
}  // namespace paceline
