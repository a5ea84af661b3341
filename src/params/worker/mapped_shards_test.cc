#include "params/worker/worker_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "paceline/error.h"
#include "params/shard/layout.h"

namespace paceline {
namespace {

using testing::HasSubstr;

// A mapped variable must be contiguous memory, so it is mapped only once both ps tasks have shared
// their halves.
TEST(MappedShards, AVariableOfTwoPsIsMappedWhenBothHaveSharedTheirsAndNoneSharesTwice) {
  const std::vector<VariableSpec> variables = {{.name = "w", .shape = {2048, 512}}};
  const std::vector<Piece> pieces = place_variables(variables, 2);
  ASSERT_EQ(pieces.size(), 2U);
  MappedShards shards(variables, pieces, 2);
  const auto memory_of = [&](int ps) {
    return SharedMemory::create(shard_layout(variables, pieces, ps).bytes);
  };
  shards.map(0, memory_of(0));
  try {
    shards.map(0, memory_of(0));
    FAIL() << "taken twice";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
    EXPECT_THAT(error.what(), HasSubstr("twice"));
  }
  EXPECT_EQ(shards.variable(0), nullptr);
  shards.map(1, memory_of(1));
  EXPECT_NE(shards.variable(0), nullptr);
}

}  // namespace
}  // namespace paceline
