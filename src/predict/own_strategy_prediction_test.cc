// Tests the prediction of a strategy that Paceline itself does not have.
#include <gtest/gtest.h>

#include "predict/prediction_text.h"
#include "predict/sized_job.h"
#include "train/testing/averaging_strategy.h"

namespace paceline {
namespace {

TEST(OwnStrategy, IsPredictedByItsTraits) {
  const AddedStrategy added(kAveraging);
  SizedJob job{.parameters = 1e7, .step_ms = 10, .workers = 2, .ps = 1, .gbps = 1};
  job.strategy = {.name = "averaging", .local_steps = 10};
  const Prediction own = predict(predicted_job_of(job, true), shape_of(job));
  EXPECT_EQ(flags_of(own.shape), "--ps 1 --workers 2 --strategy averaging --local-steps 10");
  job.strategy = {.name = "local_sgd", .local_steps = 10, .outer_rate = 1, .outer_momentum = 0};
  const Prediction local = predict(predicted_job_of(job, true), shape_of(job));
  EXPECT_DOUBLE_EQ(own.steps_per_s, local.steps_per_s);
  job.strategy.name = "sync";
  EXPECT_GT(own.steps_per_s, 1.5 * predict(predicted_job_of(job, true), shape_of(job)).steps_per_s);
}

}  // namespace
}  // namespace paceline
