// How a worker begins again when a ps has lost its values, and how the chief makes all begin again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "params/protocol/testing/outbox_text.h"
#include "params/protocol/testing/worker_machine.h"

namespace paceline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

TEST(WorkerJobThatBeginsAgain, APsThatWasRestartedHasLostWhatTheWorkerTrainedWith) {
  WorkerMachine it;
  it.join();
  EXPECT_EQ(it.closed(0, 1s), WorkerTask::Closed::kCutOff);
  it.tick(1s);
  it.task.connected(0, DType::kFloat32, it.out);
  EXPECT_EQ(sent<Hello>(it.out).ps_incarnation, 3u);
  try {
    it.received(0, MessageType::kRestarted);
    FAIL() << "it goes on";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kAborted);
    EXPECT_STREQ(error.what(), "ps:0 at a:1 was restarted: its values are lost");
  }
}

/// The chief finds that ps:1 was started again.
struct Chief : WorkerMachine {
  Chief() : WorkerMachine({}, 0) {
    tick(0s);
    task.connected(0, DType::kFloat32, out);
    received(0, MessageType::kWelcome, Welcome{.incarnation = 3, .epoch = 4});
    received(0, MessageType::kDeclared, Declared{.initialised = true, .changed_after_reads = {}});
    tick(0s);
    task.connected(1, DType::kFloat32, out);
    received(1, MessageType::kWelcome, Welcome{.incarnation = 8, .epoch = 1});
    out.clear();
    received(1, MessageType::kDeclared, Declared{.initialised = false, .changed_after_reads = {}});
  }
};

TEST(WorkerJobThatBeginsAgain, TheChiefAsksThosePsToBeginAgainThatHaveValuesWhenAnotherHasNone) {
  Chief it;
  EXPECT_THAT(take_text(it.out), ElementsAre("0 begin_again"));
  EXPECT_FALSE(it.task.joined());
  it.tick(0s);
  EXPECT_THAT(it.timed_out(60s), HasSubstr("--join-timeout"));
}

TEST(WorkerJobThatBeginsAgain, TheChiefBeginsAgainItselfOnceTheyHaveForgottenTheirs) {
  Chief it;
  EXPECT_EQ(it.closed(0, 1s), WorkerTask::Closed::kExpected);
  try {
    it.tick(1s);
    FAIL() << "it goes on";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kAborted);
    EXPECT_STREQ(error.what(), "ps:1 at b:2 has lost its values");
  }
}

/// The chief finds that no worker's values belong to the values of the ps tasks.
struct FoundingChief : WorkerMachine {
  explicit FoundingChief(Duration after = 0s) : WorkerMachine({}, 0) {
    for (int ps = 0; ps < 2; ++ps) {
      tick(0s);
      task.connected(ps, DType::kFloat32, out);
      received(ps, MessageType::kWelcome, Welcome{.incarnation = 3, .epoch = 4});
      received(ps, MessageType::kDeclared,
               Declared{.initialised = true, .changed_after_reads = {}});
    }
    out.clear();
    task.begin_again("all are lost", {.unreached = {1}}, at(after), out);
  }
};

// The chief may have looked for a training worker for all of --join-timeout before it calls
// begin_again(). So --join-timeout starts anew at this call.
TEST(WorkerJobThatBeginsAgain, ThePsHaveTheWholeJoinTimeoutToForgetTheirValues) {
  FoundingChief it(60s);
  EXPECT_EQ(it.timed_out(60s), "");
  EXPECT_EQ(it.timed_out(119s), "");
  EXPECT_EQ(it.timed_out(120s),
            "the ps tasks have not forgotten their values within 60 s (--join-timeout)");
}

TEST(WorkerJobThatBeginsAgain, TheOtherPsForgetTheirValuesOncePs0Does) {
  FoundingChief it;
  EXPECT_EQ(sent<BeginAgain>(it.out).unreached, std::vector<std::int32_t>{1});
  EXPECT_THAT(take_text(it.out), ElementsAre("0 begin_again"));
  EXPECT_EQ(it.closed(0, 1s), WorkerTask::Closed::kExpected);
  EXPECT_THAT(take_text(it.out), ElementsAre("1 begin_again"));
  EXPECT_EQ(it.timed_out(1s), "");
  EXPECT_EQ(it.closed(1, 1s), WorkerTask::Closed::kExpected);
  EXPECT_EQ(it.timed_out(1s, ErrorCode::kAborted), "all are lost");
}

TEST(WorkerJobThatBeginsAgain, TheOtherPsKeepTheirValuesWhenPs0Refuses) {
  FoundingChief it;
  it.out.clear();
  EXPECT_THROW(it.received(0, MessageType::kRefuse, std::string("worker:1 trains")), Error);
  EXPECT_EQ(it.closed(0, 1s), WorkerTask::Closed::kExpected);
  EXPECT_THAT(take_text(it.out), IsEmpty());
  EXPECT_EQ(it.timed_out(1s), "") << "what it was told counts";
}

}  // namespace
}  // namespace paceline
