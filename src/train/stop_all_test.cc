// One worker ends the training of all workers, by itself or in a hook that evaluates.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "base/deadline.h"
#include "paceline/evaluator.h"
#include "paceline/hooks.h"
#include "train/testing/served.h"
#include "train/testing/session_fixture.h"

namespace paceline {
namespace {

using namespace std::chrono_literals;

class StopAll : public SessionTest {
 protected:
  std::function<void(Feed&)> ones() const {
    return [this](Feed& feed) {
      std::ranges::fill(feed.data<float>(x_), 1.0f);
      std::ranges::fill(feed.data<float>(y_), 10.0f);
    };
  }
  /// Makes steps until training has ended; the worker hears of the end between two steps.
  void expect_ends(Session& session) const {
    const Deadline deadline = Deadline::after(60s);
    while (session.step(ones()) && !deadline.passed()) {
    }
    EXPECT_TRUE(session.ended());
  }
};

TEST_F(StopAll, OneProcessMakesNoFurtherStep) {
  run_.steps = 1000;
  Session session(training(), cluster_, run_);
  EXPECT_TRUE(session.step(ones()));
  session.stop_all();
  EXPECT_FALSE(session.step(ones()));
  EXPECT_TRUE(session.ended());
  EXPECT_FALSE(session.run(ones()));
  EXPECT_EQ(session.last_step().step, 1);
}

TEST_F(StopAll, AWorkerEndsTheTrainingOfTheOthers) {
  run_.steps = 1'000'000;
  const Served served(2);
  Session chief(training(), served.cluster(0), run_), other(training(), served.cluster(1), run_);
  EXPECT_TRUE(other.step(ones()));
  other.stop_all();
  EXPECT_FALSE(other.step(ones()));
  expect_ends(chief);
  EXPECT_LT(chief.last_step().global_step, 1'000'000);
}

TEST_F(StopAll, AnEvaluationOfTheChiefEndsTheTrainingOfAll) {
  run_.steps = 1'000'000;
  const Served served(2);
  Session chief(training(), served.cluster(0), run_), other(training(), served.cluster(1), run_);
  int evaluations = 0, by_every_worker = 0;
  for (Session* session : {&chief, &other}) {
    session->add(EvaluateEvery(Interval(1), [&](Session& whose, const StepResult&) {
      EXPECT_EQ(&whose, &chief);
      return ++evaluations < 3;
    }));
    session->add(EvaluateEvery(
        Interval(1), [&](Session&, const StepResult&) { return ++by_every_worker > 0; },
        EvaluateOn::kEveryWorker));
  }
  EXPECT_TRUE(other.step(ones()));
  EXPECT_FALSE(chief.run(ones()));
  expect_ends(other);
  EXPECT_EQ(evaluations, 3);
  EXPECT_EQ(by_every_worker, chief.last_step().step + other.last_step().step);
}

TEST_F(StopAll, AnEvaluationBesideTheChiefEndsTheTrainingOfAll) {
  run_.steps = 1'000'000;
  const Served served(2);
  Session chief(training(), served.cluster(0), run_), other(training(), served.cluster(1), run_);
  for (Session* session : {&chief, &other}) {
    session->add(EvaluateBeside(
        Interval(1), [](Evaluator&) {},
        [&](Session& whose, const StepResult&) {
          EXPECT_EQ(&whose, &chief);
          return false;
        }));
  }
  EXPECT_TRUE(other.step(ones()));
  EXPECT_FALSE(chief.run(ones()));
  expect_ends(other);
}

}  // namespace
}  // namespace paceline
