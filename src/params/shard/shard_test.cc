#include "params/shard/shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/machine_memory.h"
#include "paceline/error.h"

namespace paceline {
namespace {

TEST(Shard, RefusesWhatItCannotHold) {
  const auto shard_of = [](const VariableSpec& variable) {
    const std::vector<VariableSpec> variables = {variable};
    ApplyPool pool(1);
    Shard(variables, place_variables(variables, 1), 0, pool);
  };
  EXPECT_THROW(shard_of({.name = "i", .dtype = DType::kInt64, .shape = {2}}), Error);
  EXPECT_THROW(shard_of({.name = "huge", .shape = {1 << 30, 1 << 20}}), Error);
  EXPECT_NO_THROW(shard_of({.name = "i", .dtype = DType::kInt64, .shape = {2}, .trained = false}));
}

// The variable takes a twentieth of the machine's memory: it fits, but forty contributions to it do
// not.
TEST(Shard, CountsTheContributionsThatWaitForTheirRound) {
  const auto elements = std::int64_t(memory_of_machine() / 20 / sizeof(float));
  const std::vector<VariableSpec> variables = {{.name = "large", .shape = {elements}}};
  ApplyPool pool(1);
  try {
    const Shard shard(variables, place_variables(variables, 1), 0, pool, {}, 40);
    FAIL() << "it has room for all";
  } catch (const Error& error) {
    EXPECT_THAT(
        error.what(),
        ::testing::HasSubstr("the variables and 40 contributions that wait for their round need"));
  }
}

TEST(Shard, ChangesOnlyFloat32VariablesThatAreThere) {
  const std::vector<VariableSpec> variables = {
      {.name = "a", .shape = {8}, .trained = false},
      {.name = "i", .dtype = DType::kInt64, .shape = {2}, .trained = false},
      {.name = "b", .shape = {8}, .trained = false}};
  ApplyPool pool(1);
  const auto changed = [&](const std::string& name) {
    const AfterReads after_reads = {{name, [](std::int64_t, std::span<float>) {}}};
    return Shard(variables, place_variables(variables, 1), 0, pool, after_reads)
        .changed_after_reads();
  };
  EXPECT_EQ(changed("b"), std::vector<VariableId>{2});
  EXPECT_THROW(changed("i"), Error);
  EXPECT_THROW(changed("c"), Error);
}

TEST(Shard, KnowsOnlyItsOwnPieces) {
  const std::vector<VariableSpec> variables = {{.name = "a", .shape = {8}},
                                               {.name = "b", .shape = {8}}};
  ApplyPool pool(1);
  Shard shard(variables, place_variables(variables, 2), 1, pool);
  ASSERT_EQ(shard.size(), 1u);
  EXPECT_EQ(shard.at(0).variable().name, "b");
  EXPECT_EQ(shard.position(1), 0u);
  EXPECT_THROW(shard.position(0), Error);
  EXPECT_THROW(shard.position(9), Error);
  EXPECT_GE(shard.values()->size(), 8 * sizeof(float));
}

}  // namespace
}  // namespace paceline
