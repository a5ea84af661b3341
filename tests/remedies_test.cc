// Tests that a program trains once the remedy that its error names has been applied.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/process.h"

namespace paceline::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Remedies : public ::testing::Test {
 protected:
  Finished train(const Words& more) const {
    return run_paceline(join({{"train", "mlp", "--hidden", "16", "--batch", "8", "--threads", "1",
                               "--out", folder_.path("out")},
                              more}));
  }
  const TemporaryFolder folder_;
};

TEST_F(Remedies, AProgramWithoutPipelinesLeavesShardOut) {
  const Words job = {"--ps", "1", "--workers", "2", "--steps", "20"};
  const Finished failed = train(join({job, {"--shard", "dynamic"}}));
  EXPECT_EQ(failed.status, 2) << failed.output;
  EXPECT_THAT(failed.output, HasSubstr("none that asks for them: leave --shard out"));
  EXPECT_THAT(failed.output, Not(HasSubstr("to go on"))) << "the same command fails again";
  const Finished mended = train(join({job, {"--overwrite"}}));
  EXPECT_EQ(mended.status, 0) << mended.output;
}

TEST_F(Remedies, DataWithoutEndTakesStepsOrSeconds) {
  const Finished failed = train({"--epochs", "2"});
  EXPECT_THAT(failed.output, HasSubstr("use --steps or --seconds"));
  EXPECT_EQ(train({"--steps", "2"}).status, 0);
}

TEST_F(Remedies, AFolderWithACheckpointIsResumedOrOverwritten) {
  ASSERT_EQ(train({"--steps", "5"}).status, 0);
  const Finished failed = train({"--steps", "8"});
  EXPECT_THAT(failed.output, HasSubstr("--resume goes on from it, --overwrite deletes it"));
  EXPECT_EQ(train({"--steps", "8", "--resume"}).status, 0);
  EXPECT_EQ(train({"--steps", "5", "--overwrite"}).status, 0);
}

// The predicted strategy, whichever it is, can read the checkpoint of any other.
TEST_F(Remedies, AutoGoesOnFromTheCheckpointOfAnyStrategy) {
  const Finished local =
      train({"--ps", "1", "--workers", "2", "--strategy", "local_sgd", "--steps", "40"});
  ASSERT_EQ(local.status, 0) << local.output;
  const Finished automatic = train({"--strategy", "auto", "--steps", "80", "--resume"});
  EXPECT_EQ(automatic.status, 0) << automatic.output;
  EXPECT_THAT(automatic.output, HasSubstr("Goes on from step "));
  const Finished back = train(
      {"--ps", "0", "--workers", "2", "--strategy", "local_sgd", "--steps", "120", "--resume"});
  EXPECT_EQ(back.status, 0) << back.output;
}

}  // namespace
}  // namespace paceline::testing
