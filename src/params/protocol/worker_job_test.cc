#include "params/protocol/worker_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "params/protocol/testing/outbox_text.h"

namespace paceline {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

/// worker:1, or another, of a job with ps:0 and ps:1, from time 0.
struct Machine {
  explicit Machine(AggregationSpec aggregation = {}, int worker = 1)
      : job(options(std::move(aggregation), worker), at(0s)) {}
  static WorkerJobOptions options(AggregationSpec aggregation, int worker) {
    WorkerJobOptions options;
    options.worker = worker;
    options.ps = {"ps:0 at a:1", "ps:1 at b:2"};
    options.cluster_id = "job";
    options.incarnation = 7;
    options.declare.aggregation = std::move(aggregation);
    options.join_timeout = 60s;
    options.reconnect_timeout = 30s;
    options.say_after = 2s;
    return options;
  }
  static TimePoint at(Duration time) { return TimePoint(time); }

  TimePoint tick(Duration time) {
    now = at(time);
    return job.tick(now, out);
  }
  void received(int ps, MessageType type, ControlMessage::Body body = {}, std::uint64_t step = 0) {
    job.received(ps, {type, std::move(body), step}, now, out);
  }
  /// Connects to each ps in turn; both have agreed then.
  void join() {
    for (int ps = 0; ps < 2; ++ps) {
      tick(0s);
      job.connected(ps, DType::kFloat32, out);
      received(ps, MessageType::kWelcome, Welcome{.incarnation = 3, .epoch = 4});
    }
    for (int ps = 0; ps < 2; ++ps)
      received(ps, MessageType::kDeclared,
               Declared{.initialised = false, .changed_after_reads = {}});
    out.clear();
  }
  std::string timed_out(Duration time, ErrorCode code = ErrorCode::kUnavailable) {
    try {
      tick(time);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      return error.what();
    }
    return "";
  }
  WorkerJob::Closed closed(int ps, Duration time, ErrorCode code = ErrorCode::kUnavailable,
                           const WorkerJob::Ended& ended = {.where = "ps:0 in step 3"}) {
    return job.closed(ps, Error(code, "it went away"), ended, at(time), out);
  }

  TimePoint now{};
  WorkerJob job;
  Outbox out;
};

TEST(WorkerJob, JoinsOnePsAfterTheOtherAndLearnsWhereToBegin) {
  Machine it;
  it.tick(0s);
  EXPECT_THAT(take_text(it.out), ElementsAre("connect 0"));
  it.job.connected(0, DType::kBFloat16, it.out);
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
  it.job.connected(1, DType::kFloat32, it.out);
  it.received(1, MessageType::kWelcome, Welcome{});
  it.received(1, MessageType::kDeclared, Declared{.initialised = true, .changed_after_reads = {}});
  EXPECT_FALSE(it.job.joined());
  it.received(0, MessageType::kDeclared, Declared{.initialised = true, .changed_after_reads = {}});
  EXPECT_TRUE(it.job.joined());
  EXPECT_TRUE(it.job.was_initialised());
  it.received(1, MessageType::kInitialised, Initialised{.global_step = 0, .own_step = 99});
  EXPECT_FALSE(it.job.initialised());
  it.received(0, MessageType::kInitialised, Initialised{.global_step = 40, .own_step = 12});
  EXPECT_TRUE(it.job.initialised());
  EXPECT_EQ(it.job.next_step(), 12);
  EXPECT_EQ(it.job.steps_done(), 12);
  EXPECT_EQ(it.job.global_step(), 40);
  EXPECT_EQ(it.tick(0s), TimePoint::max());
}

TEST(WorkerJob, BacksOffFurtherEachTimeUpToHalfASecond) {
  Machine it;
  Duration now{}, waited{};
  for (int i = 0; i < 20; ++i) {
    it.tick(now);
    ASSERT_THAT(take_text(it.out), ElementsAre("connect 0")) << i;
    it.job.connect_failed(0, "nobody listens", it.at(now));
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

TEST(WorkerJob, SaysWhatItWaitsForAndThenGivesUp) {
  Machine it;
  it.tick(0s);
  it.job.connect_failed(0, "wants no memory", it.at(0s));
  it.tick(1s);
  it.job.connect_failed(0, "nobody listens", it.at(1s));
  it.tick(1s);
  it.out.clear();
  it.tick(2s);
  EXPECT_THAT(take_text(it.out),
              ElementsAre("connect 0", "say waiting for ps:0 at a:1: nobody listens"));
  it.job.connect_failed(0, "nobody listens", it.at(2s));
  EXPECT_EQ(it.timed_out(59s), "");
  EXPECT_EQ(it.timed_out(60s),
            "ps:0 at a:1 could not be reached within 60 s (--join-timeout): nobody listens "
            "(before: wants no memory)");
}

TEST(WorkerJob, SaysNothingOfWhyBeforeWhenAllTriesFailedAlike) {
  Machine it;
  for (const Duration now : {0s, 1s, 2s}) {
    it.tick(now);
    it.job.connect_failed(0, "nobody listens", it.at(now));
  }
  EXPECT_EQ(it.timed_out(60s),
            "ps:0 at a:1 could not be reached within 60 s (--join-timeout): nobody listens");
}

TEST(WorkerJob, ComesAgainToAPsThatIsBusy) {
  Machine it;
  for (const Duration now : {0s, 1s, 2s}) {
    it.tick(now);
    it.job.connected(0, DType::kFloat32, it.out);
    it.received(0, MessageType::kBusy, std::string("it serves job other"));
    EXPECT_EQ(it.closed(0, now), WorkerJob::Closed::kTryAgain);
  }
  it.out.clear();
  it.tick(3s);
  EXPECT_THAT(take_text(it.out), Contains("connect 0"));
  EXPECT_EQ(it.timed_out(60s),
            "ps:0 at a:1 could not be reached within 60 s (--join-timeout): it serves job "
            "other");
}

TEST(WorkerJob, APsThatSaysNothingIsNamed) {
  Machine it;
  it.tick(0s);
  it.job.connected(0, DType::kFloat32, it.out);
  EXPECT_EQ(
      it.timed_out(60s),
      "ps:0 at a:1 accepts connections but said nothing within 60 s (--join-timeout): it may not "
      "speak Paceline");
}

TEST(WorkerJob, AChiefThatDeclaresNothingIsNamed) {
  Machine it;
  for (int ps = 0; ps < 2; ++ps) {
    it.tick(0s);
    it.job.connected(ps, DType::kFloat32, it.out);
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

TEST(WorkerJob, WaitsForTheVariablesOnlyWhenAskedTo) {
  Machine it;
  it.join();
  EXPECT_EQ(it.tick(100s), TimePoint::max());
  it.job.wait_initialised(it.at(100s));
  it.tick(100s);
  it.tick(102s);
  EXPECT_THAT(take_text(it.out),
              ElementsAre("say waiting for the chief to initialise the variables"));
  it.job.wait_initialised(it.at(150s));
  EXPECT_EQ(it.timed_out(159s), "");
  EXPECT_EQ(it.timed_out(160s),
            "the chief has not initialised the variables within --join-timeout");
}

TEST(WorkerJob, EndsTheTrainingOfAllOnce) {
  Machine it;
  it.join();
  EXPECT_FALSE(it.job.training_ended());
  it.job.end_training(it.out);
  it.job.end_training(it.out);
  EXPECT_THAT(take_text(it.out), ElementsAre("0 end_training", "1 end_training"));
  it.received(0, MessageType::kJobState, JobState{.all_warm = true});
  EXPECT_TRUE(it.job.training_ended()) << "that was sent before";
}

TEST(WorkerJob, LearnsThatAnotherWorkerHasEndedTheTraining) {
  Machine it;
  it.join();
  it.received(0, MessageType::kJobState, JobState{.ended = true});
  EXPECT_TRUE(it.job.training_ended());
  it.job.end_training(it.out);
  EXPECT_THAT(take_text(it.out), IsEmpty());
}

TEST(WorkerJob, ARefusalAndAMessageOfNoPsAreErrors) {
  Machine it;
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

TEST(WorkerJob, AConnectionThatEndsIsTriedAgainUntilThePsHasAnswered) {
  Machine it;
  it.tick(0s);
  EXPECT_EQ(it.closed(0, 0s), WorkerJob::Closed::kTryAgain) << "before it is made";
  it.job.connected(0, DType::kFloat32, it.out);
  EXPECT_THAT(take_text(it.out), ElementsAre("connect 0")) << "no hello: it has ended already";
  it.tick(1s);
  it.job.connected(0, DType::kFloat32, it.out);
  EXPECT_EQ(it.closed(0, 1s), WorkerJob::Closed::kTryAgain) << "it said hello";
  it.tick(2s);
  it.job.connected(0, DType::kFloat32, it.out);
  EXPECT_EQ(it.closed(0, 2s, ErrorCode::kDataLoss), WorkerJob::Closed::kTryAgain) << "it is torn";
  EXPECT_EQ(it.closed(0, 2s, ErrorCode::kDataLoss), WorkerJob::Closed::kStranger) << "and again";
  it.received(0, MessageType::kWelcome, Welcome{});
  EXPECT_EQ(it.closed(0, 2s), WorkerJob::Closed::kCutOff) << "it was welcome";
  const WorkerJob::Ended broken = {.where = "ps:0", .broken = true};
  EXPECT_EQ(it.closed(0, 2s, ErrorCode::kDataLoss, broken), WorkerJob::Closed::kLost)
      << "it said what it must not";
  EXPECT_FALSE(it.job.all_closed());
  it.out.clear();
  it.job.leave(it.out);
  EXPECT_THAT(take_text(it.out), ElementsAre("0 goodbye", "1 goodbye"));
  EXPECT_EQ(it.closed(1, 3s, ErrorCode::kDataLoss), WorkerJob::Closed::kExpected);
  EXPECT_TRUE(it.job.all_closed());
}

TEST(WorkerJob, CountsTheStalenessOfItsSteps) {
  Machine it;
  it.join();
  EXPECT_EQ(it.job.staleness().contributions, 0);
  it.received(0, MessageType::kStepDone, StepDone{.global_step = 8, .staleness = 7}, 0);
  it.received(0, MessageType::kStepDone, StepDone{.global_step = 8, .staleness = -1}, 1);
  it.received(0, MessageType::kStepDone, StepDone{.global_step = 10, .staleness = 1}, 2);
  EXPECT_EQ(it.job.global_step(), 10);
  EXPECT_EQ(it.job.staleness().contributions, 2) << "one was applied before";
  EXPECT_EQ(it.job.staleness().updates, 8);
}

TEST(WorkerJob, ComesBackAsItselfAndGoesOnWhereItWas) {
  Machine it;
  it.join();
  const WorkerJob::Ended ended = {.where = "ps:0 in step 3", .handled = 8};
  EXPECT_EQ(it.closed(0, 100s, ErrorCode::kUnavailable, ended), WorkerJob::Closed::kCutOff);
  EXPECT_EQ(it.job.cut_off(), 1);
  EXPECT_TRUE(it.job.joined()) << "nothing need be agreed on again";
  EXPECT_EQ(it.tick(100s), it.at(130s));
  it.job.connected(0, DType::kFloat32, it.out);
  EXPECT_EQ(sent<Hello>(it.out).epoch, 4u);
  EXPECT_EQ(sent<Hello>(it.out).handled, 8u);
  EXPECT_THAT(take_text(it.out),
              ElementsAre("say lost ps:0 in step 3: it went away; it may come back within 30 s "
                          "(--reconnect-timeout)",
                          "connect 0", "0 hello"));
  it.now = it.at(102s);
  it.received(0, MessageType::kWelcome, Welcome{.incarnation = 3, .epoch = 9});
  EXPECT_THAT(take_text(it.out), ElementsAre("say ps:0 at a:1 is back after 2.0 s"));
  EXPECT_EQ(it.job.cut_off(), 0);
  EXPECT_EQ(it.tick(500s), TimePoint::max());
}

TEST(WorkerJob, APsThatStaysAwayIsLostWithWhatBecameOfTheLastTry) {
  Machine it;
  it.join();
  it.closed(0, 100s);
  it.tick(100s);
  it.job.connect_failed(0, "nobody listens", it.at(100s));
  EXPECT_EQ(it.tick(100s), it.at(100s) + 20ms);
  EXPECT_EQ(it.timed_out(129s), "");
  EXPECT_EQ(it.timed_out(130s, ErrorCode::kAborted),
            "lost ps:0 in step 3: it went away; it did not come back within 30 s "
            "(--reconnect-timeout): nobody listens");
}

TEST(WorkerJob, AConnectionThatIsCutWhileItComesBackIsTriedAgain) {
  Machine it;
  it.join();
  it.closed(0, 100s);
  it.tick(100s);
  it.job.connected(0, DType::kFloat32, it.out);
  EXPECT_EQ(it.closed(0, 100s, ErrorCode::kDataLoss), WorkerJob::Closed::kTryAgain);
  it.out.clear();
  it.tick(101s);
  EXPECT_THAT(take_text(it.out), ElementsAre("connect 0"));
}

TEST(WorkerJob, WhoLeavesComesBackUntilItsGoodbyeIsConfirmedOrThePsHasEnded) {
  Machine it;
  it.join();
  it.job.leave(it.out);
  const WorkerJob::Ended confirmed = {.where = "ps:1", .all_confirmed = true};
  EXPECT_EQ(it.closed(1, 9s, ErrorCode::kCancelled, confirmed), WorkerJob::Closed::kExpected);
  EXPECT_EQ(it.closed(0, 9s), WorkerJob::Closed::kCutOff);
  it.out.clear();
  it.tick(9s);
  EXPECT_THAT(take_text(it.out), ElementsAre("connect 0"));
  EXPECT_FALSE(it.job.all_closed());
  it.job.connect_failed(0, "nobody listens", it.at(9s));
  EXPECT_TRUE(it.job.all_closed());
}

TEST(WorkerJob, UnderBoundedStalenessAStepBeginsWithinTheLimit) {
  Machine it({AggregationKind::kBounded, 1});
  it.join();
  EXPECT_FALSE(it.job.may_begin_step()) << "no limit is known yet";
  it.received(0, MessageType::kStepLimit, std::int64_t{0});
  EXPECT_TRUE(it.job.may_begin_step());
  it.job.begin_step();
  EXPECT_FALSE(it.job.may_begin_step());
  EXPECT_TRUE(Machine().job.may_begin_step());
}

TEST(WorkerJob, APsThatWasRestartedHasLostWhatTheWorkerTrainedWith) {
  Machine it;
  it.join();
  EXPECT_EQ(it.closed(0, 1s), WorkerJob::Closed::kCutOff);
  it.tick(1s);
  it.job.connected(0, DType::kFloat32, it.out);
  EXPECT_EQ(sent<Hello>(it.out).ps_incarnation, 3u);
  try {
    it.received(0, MessageType::kRestarted);
    FAIL() << "it goes on";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kAborted);
    EXPECT_STREQ(error.what(), "ps:0 at a:1 was restarted: its values are lost");
  }
}

/// The chief, which finds that ps:1 was started again.
struct Chief : Machine {
  Chief() : Machine({}, 0) {
    tick(0s);
    job.connected(0, DType::kFloat32, out);
    received(0, MessageType::kWelcome, Welcome{.incarnation = 3, .epoch = 4});
    received(0, MessageType::kDeclared, Declared{.initialised = true, .changed_after_reads = {}});
    tick(0s);
    job.connected(1, DType::kFloat32, out);
    received(1, MessageType::kWelcome, Welcome{.incarnation = 8, .epoch = 1});
    out.clear();
    received(1, MessageType::kDeclared, Declared{.initialised = false, .changed_after_reads = {}});
  }
};

TEST(WorkerJob, TheChiefAsksThosePsToBeginAgainThatHaveValuesWhenAnotherHasNone) {
  Chief it;
  EXPECT_THAT(take_text(it.out), ElementsAre("0 begin_again"));
  EXPECT_FALSE(it.job.joined());
  it.tick(0s);
  EXPECT_THAT(it.timed_out(60s), HasSubstr("--join-timeout"));
}

TEST(WorkerJob, TheChiefBeginsAgainItselfOnceTheyHaveForgottenTheirs) {
  Chief it;
  EXPECT_EQ(it.closed(0, 1s), WorkerJob::Closed::kExpected);
  try {
    it.tick(1s);
    FAIL() << "it goes on";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kAborted);
    EXPECT_STREQ(error.what(), "ps:1 at b:2 has lost its values");
  }
}

/// The chief, which finds that the values of the ps tasks belong to none of the workers'.
struct FoundingChief : Machine {
  explicit FoundingChief(Duration after = 0s) : Machine({}, 0) {
    for (int ps = 0; ps < 2; ++ps) {
      tick(0s);
      job.connected(ps, DType::kFloat32, out);
      received(ps, MessageType::kWelcome, Welcome{.incarnation = 3, .epoch = 4});
      received(ps, MessageType::kDeclared,
               Declared{.initialised = true, .changed_after_reads = {}});
    }
    out.clear();
    job.begin_again("all are lost", {.unreached = {1}}, at(after), out);
  }
};

// It may have looked for a worker that trains for all of --join-timeout before.
TEST(WorkerJob, ThePsHaveTheWholeJoinTimeoutToForgetTheirValues) {
  FoundingChief it(60s);
  EXPECT_EQ(it.timed_out(60s), "");
  EXPECT_EQ(it.timed_out(119s), "");
  EXPECT_EQ(it.timed_out(120s),
            "the ps tasks have not forgotten their values within 60 s (--join-timeout)");
}

TEST(WorkerJob, TheOtherPsForgetTheirValuesOncePs0Does) {
  FoundingChief it;
  EXPECT_EQ(sent<BeginAgain>(it.out).unreached, std::vector<std::int32_t>{1});
  EXPECT_THAT(take_text(it.out), ElementsAre("0 begin_again"));
  EXPECT_EQ(it.closed(0, 1s), WorkerJob::Closed::kExpected);
  EXPECT_THAT(take_text(it.out), ElementsAre("1 begin_again"));
  EXPECT_EQ(it.timed_out(1s), "");
  EXPECT_EQ(it.closed(1, 1s), WorkerJob::Closed::kExpected);
  EXPECT_EQ(it.timed_out(1s, ErrorCode::kAborted), "all are lost");
}

TEST(WorkerJob, TheOtherPsKeepTheirValuesWhenPs0Refuses) {
  FoundingChief it;
  it.out.clear();
  EXPECT_THROW(it.received(0, MessageType::kRefuse, std::string("worker:1 trains")), Error);
  EXPECT_EQ(it.closed(0, 1s), WorkerJob::Closed::kExpected);
  EXPECT_THAT(take_text(it.out), IsEmpty());
  EXPECT_EQ(it.timed_out(1s), "") << "what it was told counts";
}

}  // namespace
}  // namespace paceline
