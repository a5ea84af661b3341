#include "checkpoint/checkpoint_match.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/testing/sample_checkpoint.h"

namespace paceline::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(CheckpointMatch, TheSplitDoesNotCount) {
  EXPECT_THAT(differences(sample_variables(1), sample_variables(3)), IsEmpty());
}

TEST(CheckpointMatch, NamesEveryVariableThatDiffers) {
  std::vector<SavedVariable> model = sample_variables(1);
  model[0].shape = Shape({10, 4});
  model[1].rule = "sgd";
  model[1].slots.clear();
  model[2].dtype = DType::kFloat32;
  model[3].name = "other";
  EXPECT_THAT(
      differences(sample_variables(2), model),
      ElementsAre("embedding: (10,3) float32, adam with m, v, t in the checkpoint, "
                  "(10,4) float32, adam with m, v, t in the model",
                  "bias: (3) float32, adam with m, v, t in the checkpoint, (3) float32, sgd in the "
                  "model",
                  "half: (2) bfloat16, sgd in the checkpoint, (2) float32, sgd in the model",
                  "other: only in the model, () float32, sgd",
                  "scale: only in the checkpoint, () float32, sgd"));
}

// Whether the rule is applied to local steps does not count: the code that resumes decides how the
// slots of one rule serve the other.
TEST(CheckpointMatch, TheRuleOverLocalStepsDoesNotCount) {
  const std::vector<SavedVariable> plain = sample_variables(1);
  std::vector<SavedVariable> local = plain;
  for (SavedVariable& variable : local) {
    variable.local_rule = variable.rule;
    variable.rule = "momentum";
    variable.slots = {{.name = "m"}};
  }
  EXPECT_THAT(differences(local, plain), IsEmpty());
  EXPECT_THAT(differences(plain, local), IsEmpty());
  EXPECT_FALSE(of_same_rule(plain[0], local[0]));
  local[0].local_rule = "adagrad";
  EXPECT_THAT(
      differences(local, plain),
      ElementsAre("embedding: (10,3) float32, momentum over local steps of adagrad with m in "
                  "the checkpoint, (10,3) float32, adam with m, v, t in the model"));
}

}  // namespace
}  // namespace paceline::testing
