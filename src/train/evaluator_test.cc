// Evaluations beside training compute on the values that they copied: the results are those of a
// session that does nothing else.
#include "paceline/evaluator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "base/clock.h"
#include "kernels/testing/queue_device.h"
#include "paceline/error.h"
#include "paceline/ops.h"
#include "train/testing/served.h"
#include "train/testing/session_fixture.h"

namespace paceline {
namespace {

using ::testing::HasSubstr;

/// A model of words: a table that is trained by rows, a state, and a dense layer.
class EvaluatorTest : public ::testing::Test {
 protected:
  static constexpr int kSteps = 30;

  EvaluatorTest() {
    run_.quiet = true;
    cluster_.threads = 1;
    train_loss_ = build(train_, 6);
    valid_loss_ = build(valid_, 9);
  }

  static Value build(Graph& graph, std::int64_t words) {
    const Value ids = graph.input("ids", {words}, DType::kInt32);
    const Value state = graph.local("state", {words, 4});
    const Value table = graph.variable("table", {20, 4}, Initializer::uniform(-1, 1));
    const Value h = tanh(add(embedding_lookup(table, ids), state));
    graph.assign(state, h);
    const Value y = graph.constant(Tensor(DType::kFloat32, {words, 3}));
    return graph.named("loss", reduce_mean(square(sub(dense(h, 3, "out"), y))));
  }
  static void feed(Feed& feed, const Graph& graph, std::int64_t step) {
    const auto ids = feed.data<std::int32_t>(graph.find("ids"));
    for (std::size_t i = 0; i < ids.size(); ++i) {
      ids[i] = std::int32_t((std::size_t(step) * 7 + i * i) % 20);
    }
  }
  std::function<void(Feed&)> training_feed() const {
    return [this](Feed& f) { feed(f, train_, f.step()); };
  }
  std::function<void(Feed&)> valid_feed() const {
    return [this](Feed& f) { feed(f, valid_, 3 * f.step()); };
  }
  Training training() { return minimize(train_loss_, Adam{.learning_rate = 0.02f}); }
  std::unique_ptr<Session> make(const Cluster& cluster) {
    return std::make_unique<Session>(training(), cluster, run_);
  }

  /// Returns the losses of a validation whose state goes on from batch to batch.
  template <typename Evaluates>
  std::vector<float> validate(Evaluates& by) const {
    by.reset_locals(valid_);
    std::vector<float> losses;
    for (int batch = 0; batch < 4; ++batch) {
      const auto fill = [&](Feed& f) { feed(f, valid_, 3 * batch); };
      losses.push_back(by.evaluate(valid_loss_, fill).template item<float>());
    }
    return losses;
  }
  /// Returns the losses of a session that makes `steps` steps and does nothing else.
  std::vector<float> alone_after(int steps) {
    const auto session = make(cluster_);
    session->share(valid_);
    for (int i = 0; i < steps; ++i) session->step(training_feed());
    return validate(*session);
  }

  /// Validates on another thread while the session makes steps, and once more after that. Expects
  /// the losses of a session that does nothing else.
  void expect_as_alone_while_training(const Cluster& cluster) {
    const std::vector<float> expected = alone_after(kSteps);
    const auto session = make(cluster);
    for (int i = 0; i < kSteps; ++i) session->step(training_feed());
    Evaluator evaluator(*session);
    evaluator.take_values();
    EXPECT_EQ(evaluator.global_step(), kSteps);
    std::atomic<int> validations = 0, steps = 0;
    auto beside = std::async(std::launch::async, [&] {
      while (validations < 3 || steps < kSteps) {
        EXPECT_EQ(validate(evaluator), expected);
        ++validations;
      }
    });
    while (validations < 3 || steps < kSteps) {
      session->step(training_feed());
      ++steps;
    }
    beside.get();
    EXPECT_EQ(validate(evaluator), expected);
    evaluator.take_values();
    EXPECT_NE(validate(evaluator), expected);
  }

  Graph train_, valid_;
  Value train_loss_, valid_loss_;
  Cluster cluster_;
  RunOptions run_;
};

TEST_F(EvaluatorTest, BesideTrainingGivesWhatItGivesAlone) {
  expect_as_alone_while_training(cluster_);
}

TEST_F(EvaluatorTest, BesideTrainingOnAPsGivesWhatItGivesAlone) {
  const Served served;
  expect_as_alone_while_training(served.cluster());
}

// Each evaluator computes in memory that the other cannot reach, with values of another step, while
// the session trains on its own device.
TEST_F(EvaluatorTest, SeveralOnDevicesOfTheirOwnRunAtOnce) {
  const auto session = make(cluster_);
  RealClock clock;
  const auto queue = [&](QueueDevice::Pace pace) {
    return std::make_unique<QueueDevice>(make_device({.kind = "cpu", .threads = 1}, clock), pace);
  };
  Evaluator first(*session, queue(QueueDevice::Pace::kAtOnce));
  Evaluator second(*session, queue(QueueDevice::Pace::kWhenWaitedFor));
  for (int i = 0; i < 5; ++i) session->step(training_feed());
  first.take_values();
  for (int i = 0; i < 5; ++i) session->step(training_feed());
  second.take_values();
  const std::vector<float> after_5 = alone_after(5), after_10 = alone_after(10);
  ASSERT_NE(after_5, after_10);
  const auto validating = [&](Evaluator& evaluator, const std::vector<float>& expected) {
    return std::async(std::launch::async, [&] {
      for (int i = 0; i < 5; ++i) EXPECT_EQ(validate(evaluator), expected);
    });
  };
  auto one = validating(first, after_5), other = validating(second, after_10);
  for (int i = 0; i < kSteps; ++i) session->step(training_feed());
  one.get();
  other.get();
}

TEST_F(EvaluatorTest, EvaluatesMovingAverages) {
  MinimizeOptions options;
  options.average_decay = 0.9f;
  Session session(minimize(train_loss_, Sgd{0.5f}, options), cluster_, run_);
  session.share(valid_);
  for (int i = 0; i < 5; ++i) session.step(training_feed());
  Evaluator evaluator(session);
  evaluator.take_values(EvaluateWith::kAverages);
  session.begin_evaluation(EvaluateWith::kAverages);
  const std::vector<float> averages = validate(session);
  EXPECT_EQ(validate(evaluator), averages);
  evaluator.take_values();
  EXPECT_NE(validate(evaluator), averages);
}

TEST_F(EvaluatorTest, SaysWhatIsMissing) {
  const auto session = make(cluster_);
  const auto code_of = [](const auto& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.code();
    }
    ADD_FAILURE() << "nothing was thrown";
    return ErrorCode::kInternal;
  };
  EXPECT_EQ(code_of([&] { Evaluator(*session, -1); }), ErrorCode::kInvalidArgument);
  Evaluator evaluator(*session);
  const auto evaluate = [&] { evaluator.evaluate(valid_loss_, valid_feed()); };
  EXPECT_EQ(code_of(evaluate), ErrorCode::kFailedPrecondition) << "no values";
  evaluator.take_values();
  EXPECT_NO_THROW(evaluate());
  EXPECT_EQ(code_of([&] { evaluator.evaluate(valid_loss_, nullptr); }),
            ErrorCode::kFailedPrecondition)
      << "an input is not fed";
  EXPECT_EQ(
      code_of([&] { evaluator.evaluate(valid_loss_, [&](Feed&) { evaluator.take_values(); }); }),
      ErrorCode::kFailedPrecondition)
      << "an evaluation is under way";
  EXPECT_EQ(code_of([&] { evaluator.evaluate(Value(), nullptr); }), ErrorCode::kInvalidArgument);
  Graph other;
  const Value unknown = other.variable("unknown", {1});
  EXPECT_EQ(code_of([&] { evaluator.evaluate(unknown, nullptr); }), ErrorCode::kNotFound);
  evaluator.cancel();
  EXPECT_EQ(code_of(evaluate), ErrorCode::kCancelled);
}

TEST_F(EvaluatorTest, AHookEvaluatesBesideAndItsResultMayEndTraining) {
  const auto session = make(cluster_);
  std::vector<float> losses;
  std::vector<std::int64_t> steps;
  session->add(EvaluateBeside(
      Interval(10), [&](Evaluator& evaluator) { losses = validate(evaluator); },
      [&](Session& told, const StepResult& at) {
        EXPECT_EQ(&told, session.get());
        EXPECT_EQ(losses, alone_after(int(at.step)));
        steps.push_back(at.step);
        return steps.size() < 2;
      }));
  EXPECT_FALSE(session->run(training_feed()));
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0], 10);
  EXPECT_GE(steps[1], 20);
}

TEST_F(EvaluatorTest, TheEndOfARunWaitsForAnEvaluationBeside) {
  run_.steps = 4;
  const auto session = make(cluster_);
  int done = 0;
  session->add(EvaluateBeside(
      Interval(4), [&](Evaluator& evaluator) { validate(evaluator); },
      [&](Session&, const StepResult& at) {
        EXPECT_EQ(at.step, 4);
        ++done;
        return true;
      }));
  EXPECT_FALSE(session->run(training_feed()));
  EXPECT_EQ(done, 1);
}

TEST_F(EvaluatorTest, AnErrorBesideEndsTraining) {
  const auto session = make(cluster_);
  session->add(EvaluateBeside(
      Interval(2), [](Evaluator&) { throw Error(ErrorCode::kDataLoss, "torn"); },
      [](Session&, const StepResult&) { return true; }));
  try {
    session->run(training_feed());
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("torn"));
  }
}

}  // namespace
}  // namespace paceline
