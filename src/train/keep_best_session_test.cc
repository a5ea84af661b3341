// Sessions that keep their best checkpoint (RunOptions::keep_best).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/temporary_folder.h"
#include "base/testing/error_of.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/checkpoints.h"
#include "paceline/evaluator.h"
#include "paceline/hooks.h"
#include "paceline/ops.h"
#include "paceline/session.h"
#include "train/testing/served.h"

namespace paceline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// w grows by 1 in each step. So the number by which a checkpoint is compared is its w, or follows
/// from w.
class KeepBestSession : public ::testing::Test {
 protected:
  KeepBestSession() {
    w_ = graph_.variable("w", {1}, Initializer::constant(0));
    loss_ = reduce_sum(scale(w_, -1.0f), {0});
    run_.quiet = true;
    run_.out = folder_.path();
    run_.save_every = Interval();
    run_.steps = 20;
    run_.keep = 1;
    run_.keep_best = KeepBest{"distance", false};
    cluster_.threads = 1;
  }

  std::unique_ptr<Session> make(const Cluster& cluster) {
    return std::make_unique<Session>(minimize(loss_, Sgd{1.0f}), cluster, run_);
  }
  float value_in(Session& session) { return session.evaluate(w_, nullptr).item<float>(); }
  std::vector<std::int64_t> saved_steps() const {
    std::vector<std::int64_t> steps;
    for (const auto& found : checkpoints_.list(WholeCheck::kChecksums)) {
      EXPECT_EQ(found.torn, "");
      steps.push_back(found.step);
    }
    return steps;
  }
  float best_value() const {
    const CheckpointReader best(checkpoints_.best(WholeCheck::kChecksums).path);
    return best.read("w").value.item<float>();
  }
  /// Trains, and gives the session the number `distance`, |w − 7|, at every third step.
  void train(Session& session) {
    session.add(EvaluateEvery(Interval(3), [this](Session& trains, const StepResult&) {
      trains.summarise("distance", std::abs(value_in(trains) - 7));
      return true;
    }));
    session.run([](Feed&) {});
  }

  TemporaryFolder folder_;
  Graph graph_;
  Value w_, loss_;
  Cluster cluster_;
  RunOptions run_;
  const Checkpoints checkpoints_{folder_.path("checkpoints")};
};

TEST_F(KeepBestSession, TheBestIsKeptBesideTheNewestAndNamesItsNumber) {
  const auto session = make(cluster_);
  train(*session);
  EXPECT_EQ(session->ended(), true);
  EXPECT_THAT(saved_steps(), ElementsAre(20, 6));
  EXPECT_EQ(best_value(), 6);
  EXPECT_EQ(checkpoints_.mark()->best->value, 1);
}

TEST_F(KeepBestSession, EarlyStoppingReturnsToIt) {
  const auto session = make(cluster_);
  train(*session);
  EXPECT_EQ(value_in(*session), 20);
  session->begin_evaluation(run_.out + ":best");
  EXPECT_EQ(value_in(*session), 6);
  session->summarise("distance", 0);  // the number of an older checkpoint changes nothing
  EXPECT_EQ(checkpoints_.mark()->best->value, 1);
  session->begin_evaluation();
  EXPECT_EQ(value_in(*session), 20);
  Evaluator evaluator(*session);
  evaluator.take_values(run_.out + ":best");
  EXPECT_EQ(evaluator.evaluate(w_, nullptr).item<float>(), 6);
  EXPECT_EQ(evaluator.global_step(), 6);
  EXPECT_THAT(error_of(ErrorCode::kNotFound, [&] { session->begin_evaluation("none:best"); }),
              HasSubstr("none is no folder of a run"));
  EXPECT_THAT(error_of(ErrorCode::kNotFound, [&] { session->begin_evaluation(":best"); }),
              HasSubstr("a run without --out keeps no checkpoint"));
}

// The newest checkpoint is the best one here, and may still be on its way to the disk.
TEST_F(KeepBestSession, TheBestIsThatOfTheLastNumber) {
  const auto session = make(cluster_);
  for (int step = 1; step <= 15; ++step) {
    ASSERT_TRUE(session->step([](Feed&) {}));
    session->summarise("distance", 100.0 - value_in(*session));
    session->begin_evaluation(run_.out + ":best");
    EXPECT_EQ(value_in(*session), float(step));
  }
}

TEST_F(KeepBestSession, ANumberWithoutAnEvaluationIsOfThePresentValues) {
  run_.keep_best = KeepBest{"train", true};
  const auto session = make(cluster_);
  session->add(EvaluateEvery(Interval(4), [](Session& trains, const StepResult& at) {
    trains.summarise("other", 1);
    trains.summarise("train", at.step == 8 ? 2 : 1);
    return true;
  }));
  session->run([](Feed&) {});
  EXPECT_EQ(best_value(), 8);
}

TEST_F(KeepBestSession, AnEvaluationBesideTrainingIsOfTheCheckpointThatItTook) {
  run_.keep_best = KeepBest{"w", false};
  const auto session = make(cluster_);
  std::vector<float> seen;
  session->add(EvaluateBeside(
      Interval(5),
      [&](Evaluator& evaluator) { seen.push_back(evaluator.evaluate(w_, nullptr).item<float>()); },
      [&](Session& trains, const StepResult&) {
        trains.summarise("w", seen.back());
        return true;
      }));
  session->run([](Feed&) {});
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(best_value(), 5);
  EXPECT_EQ(checkpoints_.mark()->best->value, 5);
}

TEST_F(KeepBestSession, AResumedRunGoesOnFromTheMark) {
  train(*make(cluster_));
  run_.resume = true;
  run_.steps = 26;
  run_.keep_best.reset();
  make(cluster_)->run([](Feed&) {});
  EXPECT_THAT(saved_steps(), ElementsAre(26, 6)) << "also where it is not asked for any more";
  run_.keep_best = KeepBest{"distance", false};
  run_.steps = 30;
  train(*make(cluster_));
  EXPECT_THAT(saved_steps(), ElementsAre(30, 6));
  run_.resume = false;
  run_.overwrite = true;
  run_.keep_best.reset();
  run_.steps = 2;
  make(cluster_)->run([](Feed&) {});
  EXPECT_THAT(saved_steps(), ElementsAre(2));
  EXPECT_FALSE(checkpoints_.mark());
}

TEST_F(KeepBestSession, OthersBeginWithItsValues) {
  train(*make(cluster_));
  run_.init_from = run_.out + ":best";
  run_.out.clear();
  run_.keep_best.reset();
  EXPECT_EQ(make(cluster_)->variables().get("w").item<float>(), 6);
}

TEST_F(KeepBestSession, OnAPsTheEvaluationReadsTheCheckpoint) {
  Served served;
  Cluster cluster = served.cluster();
  const auto session = make(cluster);
  train(*session);
  EXPECT_EQ(best_value(), 6);
  EXPECT_THAT(saved_steps(), ElementsAre(20, 6));
}

TEST_F(KeepBestSession, ANumberThatIsNeverGivenIsSaidAtTheEnd) {
  run_.keep_best = KeepBest{"distanse", false};
  ::testing::internal::CaptureStderr();
  train(*make(cluster_));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("--keep-best distanse: no checkpoint was marked as the best, since the "
                        "program gave no number distanse; it gave distance"));
}

}  // namespace
}  // namespace paceline
