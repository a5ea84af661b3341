#include "params/protocol/worker_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "params/protocol/testing/outbox_text.h"
#include "params/protocol/testing/worker_machine.h"

namespace paceline {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

TEST(WorkerTask, JoinsOnePsAfterTheOtherAndLearnsWhereToBegin) {
  WorkerMachine it;
  it.tick(0s);
  EXPECT_THAT(take_text(it.out), ElementsAre("connect 0"));
  it.task.connected(0, DType::kBFloat16, it.out);
  const Hello hello = sent<Hello>(it.out);
  EXPECT_EQ(hello.index, 1);
  EXPECT_EQ(hello.epoch, 0u);
  EXPECT_EQ(hello.incarnation, 7u);
  EXPECT_EQ(hello.wire, DType::kBFloat16);
  EXPECT_THAT(take_text(it.out), ElementsAre("0 hello"));
  it.tick(0s);
  EXPECT_THAT(take_text(it.out), IsEmpty()) << "ps:0 has not answered";
  it.received(0, MessageType::kWelcome, Welcome{});
  it.tick(0s);
  EXPECT_THAT(take_text(it.out), ElementsAre("0 declare", "connect 1"));
  it.task.connected(1, DType::kFloat32, it.out);
  it.received(1, MessageType::kWelcome, Welcome{});
  it.received(1, MessageType::kDeclared, Declared{.initialised = true, .changed_after_reads = {}});
  EXPECT_FALSE(it.task.joined());
  it.received(0, MessageType::kDeclared, Declared{.initialised = true, .changed_after_reads = {}});
  EXPECT_TRUE(it.task.joined());
  EXPECT_TRUE(it.task.was_initialised());
  it.received(1, MessageType::kInitialised, Initialised{.global_step = 0, .own_step = 99});
  EXPECT_FALSE(it.task.initialised());
  it.received(0, MessageType::kInitialised, Initialised{.global_step = 40, .own_step = 12});
  EXPECT_TRUE(it.task.initialised());
  EXPECT_EQ(it.task.next_step(), 12);
  EXPECT_EQ(it.task.steps_done(), 12);
  EXPECT_EQ(it.task.global_step(), 40);
  EXPECT_EQ(it.tick(0s), TimePoint::max());
}

TEST(WorkerTask, BacksOffFurtherEachTimeUpToHalfASecond) {
  WorkerMachine it;
  Duration now{}, waited{};
  for (int i = 0; i < 20; ++i) {
    it.tick(now);
    ASSERT_THAT(take_text(it.out), ElementsAre("connect 0")) << i;
    it.task.connect_failed(0, "nobody listens", it.at(now));
    const Duration wait = it.tick(now) - it.at(now);
    EXPECT_EQ(wait, i == 0 ? Duration(20ms) : std::min<Duration>(waited * 3 / 2, 500ms));
    if (now < 2s) it.out.clear();
    it.tick(now + wait - 1ns);
    for (const std::string& line : take_text(it.out)) EXPECT_EQ(line.find("connect"), line.npos);
    waited = wait;
    now += wait;
    if (now >= 1500ms) break;
  }
  EXPECT_GT(waited, 300ms);
}

TEST(WorkerTask, SaysWhatItWaitsForAndThenGivesUp) {
  WorkerMachine it;
  it.tick(0s);
  it.task.connect_failed(0, "wants no memory", it.at(0s));
  it.tick(1s);
  it.task.connect_failed(0, "nobody listens", it.at(1s));
  it.tick(1s);
  it.out.clear();
  it.tick(2s);
  EXPECT_THAT(take_text(it.out),
              ElementsAre("connect 0", "say waiting for ps:0 at a:1: nobody listens"));
  it.task.connect_failed(0, "nobody listens", it.at(2s));
  EXPECT_EQ(it.timed_out(59s), "");
  EXPECT_EQ(it.timed_out(60s),
            "ps:0 at a:1 could not be reached within 60 s (--join-timeout): nobody listens "
            "(before: wants no memory)");
}

TEST(WorkerTask, SaysNothingOfWhyBeforeWhenAllTriesFailedAlike) {
  WorkerMachine it;
  for (const Duration now : {0s, 1s, 2s}) {
    it.tick(now);
    it.task.connect_failed(0, "nobody listens", it.at(now));
  }
  EXPECT_EQ(it.timed_out(60s),
            "ps:0 at a:1 could not be reached within 60 s (--join-timeout): nobody listens");
}

TEST(WorkerTask, ComesAgainToAPsThatIsBusy) {
  WorkerMachine it;
  for (const Duration now : {0s, 1s, 2s}) {
    it.tick(now);
    it.task.connected(0, DType::kFloat32, it.out);
    it.received(0, MessageType::kBusy, std::string("it serves job other"));
    EXPECT_EQ(it.closed(0, now), WorkerTask::Closed::kTryAgain);
  }
  it.out.clear();
  it.tick(3s);
  EXPECT_THAT(take_text(it.out), Contains("connect 0"));
  EXPECT_EQ(it.timed_out(60s),
            "ps:0 at a:1 could not be reached within 60 s (--join-timeout): it serves job "
            "other");
}

TEST(WorkerTask, APsThatSaysNothingIsNamed) {
  WorkerMachine it;
  it.tick(0s);
  it.task.connected(0, DType::kFloat32, it.out);
  EXPECT_EQ(
      it.timed_out(60s),
      "ps:0 at a:1 accepts connections but said nothing within 60 s (--join-timeout): it may not "
      "speak Paceline");
}

TEST(WorkerTask, AChiefThatDeclaresNothingIsNamed) {
  WorkerMachine it;
  for (int ps = 0; ps < 2; ++ps) {
    it.tick(0s);
    it.task.connected(ps, DType::kFloat32, it.out);
    it.received(ps, MessageType::kWelcome, Welcome{});
  }
  it.received(0, MessageType::kDeclared, Declared{.initialised = false, .changed_after_reads = {}});
  it.out.clear();
  it.tick(10s);
  it.tick(12s);
  EXPECT_THAT(take_text(it.out),
              ElementsAre("say waiting for the chief to declare the variables to ps:1 at b:2"));
  EXPECT_EQ(it.timed_out(70s),
            "ps:1 at b:2 was told no variables by the chief within 60 s (--join-timeout)");
}

TEST(WorkerTask, WaitsForTheVariablesOnlyWhenAskedTo) {
  WorkerMachine it;
  it.join();
  EXPECT_EQ(it.tick(100s), TimePoint::max());
  it.task.wait_initialised(it.at(100s));
  it.tick(100s);
  it.tick(102s);
  EXPECT_THAT(take_text(it.out),
              ElementsAre("say waiting for the chief to initialise the variables"));
  it.task.wait_initialised(it.at(150s));
  EXPECT_EQ(it.timed_out(159s), "");
  EXPECT_EQ(it.timed_out(160s),
            "the chief has not initialised the variables within --join-timeout");
}

TEST(WorkerTask, EndsTheTrainingOfAllOnce) {
  WorkerMachine it;
  it.join();
  EXPECT_FALSE(it.task.training_ended());
  it.task.end_training(it.out);
  it.task.end_training(it.out);
  EXPECT_THAT(take_text(it.out), ElementsAre("0 end_training", "1 end_training"));
  it.received(0, MessageType::kJobState, JobState{.all_warm = true});
  EXPECT_TRUE(it.task.training_ended()) << "that was sent before";
}

TEST(WorkerTask, LearnsThatAnotherWorkerHasEndedTheTraining) {
  WorkerMachine it;
  it.join();
  it.received(0, MessageType::kJobState, JobState{.ended = true});
  EXPECT_TRUE(it.task.training_ended());
  it.task.end_training(it.out);
  EXPECT_THAT(take_text(it.out), IsEmpty());
}

TEST(WorkerTask, ARefusalAndAMessageOfNoPsAreErrors) {
  WorkerMachine it;
  try {
    it.received(1, MessageType::kRefuse, std::string("ps:1 refuses:\x1b no"));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kFailedPrecondition);
    EXPECT_STREQ(error.what(), "ps:1 at b:2: ps:1 refuses:? no");
  }
  try {
    it.received(0, MessageType::kHello, Hello{});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
  }
}

TEST(WorkerTask, AConnectionThatEndsIsTriedAgainUntilThePsHasAnswered) {
  WorkerMachine it;
  it.tick(0s);
  EXPECT_EQ(it.closed(0, 0s), WorkerTask::Closed::kTryAgain) << "before it is made";
  it.task.connected(0, DType::kFloat32, it.out);
  EXPECT_THAT(take_text(it.out), ElementsAre("connect 0")) << "no hello: it has ended already";
  it.tick(1s);
  it.task.connected(0, DType::kFloat32, it.out);
  EXPECT_EQ(it.closed(0, 1s), WorkerTask::Closed::kTryAgain) << "it said hello";
  it.tick(2s);
  it.task.connected(0, DType::kFloat32, it.out);
  EXPECT_EQ(it.closed(0, 2s, ErrorCode::kDataLoss), WorkerTask::Closed::kTryAgain) << "it is torn";
  EXPECT_EQ(it.closed(0, 2s, ErrorCode::kDataLoss), WorkerTask::Closed::kStranger) << "and again";
  it.received(0, MessageType::kWelcome, Welcome{});
  EXPECT_EQ(it.closed(0, 2s), WorkerTask::Closed::kCutOff) << "it was welcome";
  const WorkerTask::Ended broken = {.where = "ps:0", .broken = true};
  EXPECT_EQ(it.closed(0, 2s, ErrorCode::kDataLoss, broken), WorkerTask::Closed::kLost)
      << "it said what it must not";
  EXPECT_FALSE(it.task.all_closed());
  it.out.clear();
  it.task.leave(it.out);
  EXPECT_THAT(take_text(it.out), ElementsAre("0 goodbye", "1 goodbye"));
  EXPECT_EQ(it.closed(1, 3s, ErrorCode::kDataLoss), WorkerTask::Closed::kExpected);
  EXPECT_TRUE(it.task.all_closed());
}

TEST(WorkerTask, CountsTheStalenessOfItsSteps) {
  WorkerMachine it;
  it.join();
  EXPECT_EQ(it.task.staleness().contributions, 0);
  it.received(0, MessageType::kStepDone, StepDone{.global_step = 8, .staleness = 7}, 0);
  it.received(0, MessageType::kStepDone, StepDone{.global_step = 8, .staleness = -1}, 1);
  it.received(0, MessageType::kStepDone, StepDone{.global_step = 10, .staleness = 1}, 2);
  EXPECT_EQ(it.task.global_step(), 10);
  EXPECT_EQ(it.task.staleness().contributions, 2) << "one was applied before";
  EXPECT_EQ(it.task.staleness().updates, 8);
}

TEST(WorkerTask, ComesBackAsItselfAndGoesOnWhereItWas) {
  WorkerMachine it;
  it.join();
  const WorkerTask::Ended ended = {.where = "ps:0 in step 3", .handled = 8};
  EXPECT_EQ(it.closed(0, 100s, ErrorCode::kUnavailable, ended), WorkerTask::Closed::kCutOff);
  EXPECT_EQ(it.task.cut_off(), 1);
  EXPECT_TRUE(it.task.joined()) << "nothing need be agreed on again";
  EXPECT_EQ(it.tick(100s), it.at(130s));
  it.task.connected(0, DType::kFloat32, it.out);
  EXPECT_EQ(sent<Hello>(it.out).epoch, 4u);
  EXPECT_EQ(sent<Hello>(it.out).handled, 8u);
  EXPECT_THAT(take_text(it.out),
              ElementsAre("say lost ps:0 in step 3: it went away; it may come back within 30 s "
                          "(--reconnect-timeout)",
                          "connect 0", "0 hello"));
  it.now = it.at(102s);
  it.received(0, MessageType::kWelcome, Welcome{.incarnation = 3, .epoch = 9});
  EXPECT_THAT(take_text(it.out), ElementsAre("say ps:0 at a:1 is back after 2.0 s"));
  EXPECT_EQ(it.task.cut_off(), 0);
  EXPECT_EQ(it.tick(500s), TimePoint::max());
}

TEST(WorkerTask, APsThatStaysAwayIsLostWithWhatBecameOfTheLastTry) {
  WorkerMachine it;
  it.join();
  it.closed(0, 100s);
  it.tick(100s);
  it.task.connect_failed(0, "nobody listens", it.at(100s));
  EXPECT_EQ(it.tick(100s), it.at(100s) + 20ms);
  EXPECT_EQ(it.timed_out(129s), "");
  EXPECT_EQ(it.timed_out(130s, ErrorCode::kAborted),
            "lost ps:0 in step 3: it went away; it did not come back within 30 s "
            "(--reconnect-timeout): nobody listens");
}

TEST(WorkerTask, AConnectionThatIsCutWhileItComesBackIsTriedAgain) {
  WorkerMachine it;
  it.join();
  it.closed(0, 100s);
  it.tick(100s);
  it.task.connected(0, DType::kFloat32, it.out);
  EXPECT_EQ(it.closed(0, 100s, ErrorCode::kDataLoss), WorkerTask::Closed::kTryAgain);
  it.out.clear();
  it.tick(101s);
  EXPECT_THAT(take_text(it.out), ElementsAre("connect 0"));
}

TEST(WorkerTask, WhoLeavesComesBackUntilItsGoodbyeIsConfirmedOrThePsHasEnded) {
  WorkerMachine it;
  it.join();
  it.task.leave(it.out);
  const WorkerTask::Ended confirmed = {.where = "ps:1", .all_confirmed = true};
  EXPECT_EQ(it.closed(1, 9s, ErrorCode::kCancelled, confirmed), WorkerTask::Closed::kExpected);
  EXPECT_EQ(it.closed(0, 9s), WorkerTask::Closed::kCutOff);
  it.out.clear();
  it.tick(9s);
  EXPECT_THAT(take_text(it.out), ElementsAre("connect 0"));
  EXPECT_FALSE(it.task.all_closed());
  it.task.connect_failed(0, "nobody listens", it.at(9s));
  EXPECT_TRUE(it.task.all_closed());
}

TEST(WorkerTask, UnderBoundedStalenessAStepBeginsWithinTheLimit) {
  WorkerMachine it({AggregationKind::kBounded, 1});
  it.join();
  EXPECT_FALSE(it.task.may_begin_step()) << "no limit is known yet";
  it.received(0, MessageType::kStepLimit, std::int64_t{0});
  EXPECT_TRUE(it.task.may_begin_step());
  it.task.begin_step();
  EXPECT_FALSE(it.task.may_begin_step());
  EXPECT_TRUE(WorkerMachine().task.may_begin_step());
}

}  // namespace
}  // namespace paceline
