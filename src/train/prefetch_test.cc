// Feeds on a thread of their own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "base/temporary_folder.h"
#include "base/testing/error_of.h"
#include "paceline/error.h"
#include "paceline/hooks.h"
#include "paceline/input.h"
#include "train/testing/session_fixture.h"

namespace paceline {
namespace {

using ::testing::HasSubstr;

class PrefetchTest : public SessionTest {
 protected:
  std::vector<double> losses(const std::function<void(Feed&)>& by, int steps) {
    Session session(training(), cluster_, run_);
    std::vector<double> losses;
    losses.reserve(std::size_t(steps));
    for (int i = 0; i < steps; ++i) losses.push_back(session.step(by)->loss);
    return losses;
  }
};

TEST_F(PrefetchTest, EveryLossIsThatOfTheFeedItself) {
  const std::thread::id own = std::this_thread::get_id();
  std::atomic<bool> elsewhere = true;
  const auto watched = [&](Feed& f) {
    if (std::this_thread::get_id() == own) elsewhere = false;
    feed(f);
  };
  const std::vector<double> expected = losses(feeding(), 10);
  EXPECT_EQ(losses(prefetch(watched), 10), expected);
  EXPECT_EQ(losses(prefetch(watched, 5), 10), expected);
  EXPECT_TRUE(elsewhere);
  EXPECT_THROW(prefetch(feeding(), 0), Error);
}

// The feed may be called three times more than steps are finished: two batches wait, one is in use.
TEST_F(PrefetchTest, ReadsAheadAsFarAsItWasToldAndNoFurther) {
  std::atomic<int> fed = 0;
  std::promise<void> third;
  const auto counting = [&](Feed& f) {
    if (++fed == 3) third.set_value();
    feed(f);
  };
  Session session(training(), cluster_, run_);
  const auto ahead = prefetch(counting, 2);
  ASSERT_TRUE(session.step(ahead));
  ASSERT_EQ(third.get_future().wait_for(std::chrono::seconds(30)), std::future_status::ready);
  for (int step = 1; step <= 20; ++step) {
    EXPECT_LE(fed, step + 2);
    ASSERT_TRUE(session.step(ahead));
  }
}

TEST_F(PrefetchTest, TheEndOfTheDataEndsARunAndNothingIsReadUntilTheNext) {
  Session session(training(), cluster_, run_);
  int left = 3;
  std::atomic<int> stops = 0;
  const auto epoch = prefetch([&](Feed& f) {
    if (left-- > 0) return feed(f);
    ++stops;
    left = 2;
    f.stop();
  });
  EXPECT_TRUE(session.run(epoch));
  EXPECT_EQ(session.last_step().step, 3);
  EXPECT_EQ(stops, 1);
  EXPECT_TRUE(session.run(epoch));
  EXPECT_EQ(session.last_step().step, 5);
  EXPECT_EQ(stops, 2);
}

TEST_F(PrefetchTest, AnErrorSurfacesInTheStepThatWouldHaveUsedTheBatch) {
  Session session(training(), cluster_, run_);
  const auto ahead = prefetch([&](Feed& f) {
    if (f.step() == 2) throw Error(ErrorCode::kDataLoss, "torn at record 2");
    feed(f);
  });
  EXPECT_TRUE(session.step(ahead));
  EXPECT_TRUE(session.step(ahead));
  try {
    session.step(ahead);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
    EXPECT_THAT(error.what(), HasSubstr("torn at record 2"));
  }
  EXPECT_EQ(session.last_step().step, 2);
}

// A step treats inputs that are not fed, and inputs that are kept, as it does without a thread.
TEST_F(PrefetchTest, WhatIsKeptAndWhatIsMissingIsAsWithout) {
  const Tensor zeros(DType::kFloat32, {16, 1});
  {
    Session session(training(), cluster_, run_);
    const auto ahead = prefetch([&](Feed& f) {
      f.normal(x_);
      if (f.step() == 0) f.set_once(y_, zeros);
    });
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(session.step(ahead));
  }
  Session session(training(), cluster_, run_);
  EXPECT_THROW(session.step(prefetch([&](Feed& f) { f.normal(x_); })), Error);
}

TEST_F(PrefetchTest, RefusesWhatIsNoInputAndOtherTypes) {
  const Value local = graph_.local("state", {2});
  Session session(training(), cluster_, run_);
  EXPECT_THROW(session.step(prefetch([&](Feed& f) { f.view(local); })), Error);
  EXPECT_THROW(session.step(prefetch([&](Feed& f) { f.data<double>(x_); })), Error);
  EXPECT_THROW(session.step(prefetch([&](Feed& f) { f.set(x_, Tensor()); })), Error);
  EXPECT_THROW(session.step(prefetch([&](Feed& f) { f.set_once(x_, Tensor()); })), Error);
}

TEST_F(PrefetchTest, AnEvaluationDoesNotTakeTheBatchesOfATraining) {
  Session session(training(), cluster_, run_);
  const Tensor values(DType::kFloat32, {16, 1});
  std::atomic<int> evaluated = 0;
  const std::function<void(Feed&)> constant = [&](Feed& f) {
    f.set(x_, values).set(y_, values);
    evaluated += f.evaluates() ? 1 : 0;
  };
  const auto trains = prefetch(constant), evaluates = prefetch(constant);
  EXPECT_TRUE(session.step(trains));
  EXPECT_EQ(evaluated, 0);
  EXPECT_THAT(error_of(ErrorCode::kFailedPrecondition, [&] { session.evaluate(loss_, trains); }),
              HasSubstr("an evaluation would take batches that were filled ahead for "
                        "training"));
  EXPECT_TRUE(session.step(trains)) << "training goes on";
  session.evaluate(loss_, evaluates);
  EXPECT_GE(evaluated, 1) << "the function sees what the batch is for";
  EXPECT_THAT(error_of(ErrorCode::kFailedPrecondition, [&] { session.step(evaluates); }),
              HasSubstr("training would take"));
}

TEST_F(PrefetchTest, ABatchThatDependsOnItsStepIsNotUsedInAnother) {
  const Tensor values(DType::kFloat32, {16, 1});
  const auto constant = [&](Feed& f) { f.set(x_, values).set(y_, values); };
  Session session(training(), cluster_, run_);
  const auto by_step = prefetch(feeding()), by_data = prefetch(constant);
  EXPECT_TRUE(session.step(by_step));
  EXPECT_TRUE(session.step(by_data));
  EXPECT_TRUE(session.step(constant));
  EXPECT_TRUE(session.step(by_data)) << "read for step 2, used in step 3";
  EXPECT_THROW(session.step(by_step), Error);
}

// Batches that were read ahead when training ended are read again when training goes on.
TEST_F(PrefetchTest, ACheckpointHasThePositionOfWhatWasUsed) {
  const TemporaryFolder folder;
  run_.out = folder.path();
  run_.summary_every = {};
  std::vector<std::int64_t> used;
  const Value record = graph_.input("record", {}, DType::kInt64);
  SessionOptions options;
  options.watch = {record};
  const auto train = [&](int steps) {
    Session session(training(), cluster_, run_, options);
    std::atomic<std::int64_t> read = 0;
    const auto ahead = prefetch(
        [&](Feed& f) {
          std::int64_t& next = f.position().numbers["record"];
          f.data<std::int64_t>(record)[0] = next++;
          feed(f);
          ++read;
        },
        4);
    for (int i = 0; i < steps; ++i) {
      ASSERT_TRUE(session.step(ahead));
      used.push_back(session.value(record).item<std::int64_t>());
      EXPECT_EQ(session.position().numbers.at("record"), used.back() + 1);
    }
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (read < steps + 4 && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
    }
    EXPECT_EQ(read, steps + 4);
  };
  train(3);
  run_.resume = true;
  train(4);
  EXPECT_THAT(used, testing::ElementsAre(0, 1, 2, 3, 4, 5, 6));
}

}  // namespace
}  // namespace paceline
