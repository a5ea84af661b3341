// PsTask in synchronous rounds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "params/protocol/testing/outbox_text.h"
#include "params/protocol/testing/ps_machine.h"

namespace paceline {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using namespace std::chrono_literals;

/// ps:0 or ps:1 of a job with `num_ps` ps tasks and three workers.
struct Rounds : PsMachine {
  explicit Rounds(int ps = 0, int num_ps = 2, bool workers_commit = false)
      : PsMachine(options_of(ps)) {
    declare.aggregation = {
        .kind = AggregationKind::kRounds, .num_ps = num_ps, .workers_commit = workers_commit};
    if (num_ps > 1) declare.aggregation.coordinator = "ps0:1";
    for (int i = 0; i < 3; ++i) {
      Hello hello = hello_of(i);
      hello.ps = ps;
      greet(10 + PeerId(i), hello);
      received(10 + PeerId(i), MessageType::kDeclare, declare);
    }
    received(10, MessageType::kWriteEnd, std::int64_t{0});
    task.tick(now, out);
    out.clear();
  }
  static PsTaskOptions options_of(int ps) {
    PsTaskOptions options = PsMachine::options();
    options.ps = ps;
    return options;
  }
  static Hello hello_of_ps(int index, std::uint64_t incarnation = 1) {
    Hello hello = hello_of(index, incarnation);
    hello.role = "ps";
    return hello;
  }
  static StepBegin first_frame(std::int64_t round, std::int64_t examples = 1, float clip_norm = 0) {
    return {.examples = examples, .round = round, .clip_norm = clip_norm, .learning_rates = {}};
  }
  Fate begin(int worker, std::int64_t step, const StepBegin& first) {
    return task.begin_step(10 + PeerId(worker), step, false, first);
  }
  void gives(int worker, std::int64_t round) {
    task.end_step(10 + PeerId(worker), round, begin(worker, round, first_frame(round)), now, out);
  }
  std::string refusal(int worker, std::int64_t step, const StepBegin& first) {
    try {
      begin(worker, step, first);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
      return error.what();
    }
    return "no error";
  }
};

TEST(PsJobRounds, ARoundIsClosedWhenAllShardsHaveAll) {
  Rounds it;
  it.greet(20, Rounds::hello_of_ps(1));
  for (int worker = 0; worker < 3; ++worker) it.gives(worker, 0);
  EXPECT_THAT(take_text(it.out), IsEmpty()) << "ps:1 has said nothing";
  for (int worker = 0; worker < 3; ++worker) {
    it.received(20, MessageType::kWhole,
                RoundContribution{.worker = worker, .incarnation = 1, .examples = 1});
  }
  const auto* const decided = std::get_if<Outbox::Decide>(&it.out.actions().back());
  ASSERT_NE(decided, nullptr);
  EXPECT_EQ(decided->told.size(), 3u);
  EXPECT_EQ(decided->told[2].to, 12u);
  EXPECT_EQ(decided->told[2].done, (StepDone{.global_step = 1, .staleness = 0}));
  EXPECT_THAT(take_text(it.out), ::testing::ElementsAre("20 decided", "close round 0"));
  EXPECT_EQ(it.task.global_step(), 1);
}

TEST(PsJobRounds, WorkersThatCommitAreToldWithWhomTheyHaveCounted) {
  Rounds it(0, 1, true);
  for (int worker = 0; worker < 3; ++worker) it.gives(worker, 0);
  it.out.clear();
  it.received(12, MessageType::kCommitted, CommittedRound{.round = 0, .contributors = {0, 2}});
  const auto* const decided = std::get_if<Outbox::Decide>(&it.out.actions().back());
  ASSERT_NE(decided, nullptr);
  ASSERT_EQ(decided->told.size(), 3u);
  const std::vector<std::int32_t> both = {0, 2};
  EXPECT_EQ(decided->told[1].done.contributors, fingerprint_of(both));
  EXPECT_EQ(decided->told[2].to, 11u);
  EXPECT_EQ(decided->told[2].done.contributors, 0u) << "its contribution was dropped";
}

TEST(PsJobRounds, AnotherPsSendsWhatIsWholeAndCarriesOutTheWordsOfPs0) {
  Rounds it(1);
  it.gives(2, 0);
  EXPECT_EQ(sent<RoundContribution>(it.out).worker, 2);
  it.out.clear();
  const RoundContribution given{.worker = 2, .incarnation = 1, .examples = 1};
  it.task.from_coordinator(
      {MessageType::kDecided,
       RoundDecision{.closes = true, .contributors = {given}, .dropped = {}, .displaced = {}}},
      it.now, it.out);
  EXPECT_THAT(take_text(it.out), ::testing::ElementsAre("close round 0"));
  EXPECT_EQ(it.task.global_step(), 1);
}

TEST(PsJobRounds, AnotherPsLooksForPs0UntilItIsThere) {
  Rounds it(1);
  it.task.coordinator_failed("nobody listens", it.now);
  it.now += 3s;
  it.task.tick(it.now, it.out);
  const std::string connect = "connect " + std::to_string(Outbox::kCoordinator);
  EXPECT_THAT(take_text(it.out),
              ::testing::ElementsAre("say waits for ps:0, which closes the rounds: nobody listens",
                                     connect));
  it.task.coordinator_connected(it.out);
  EXPECT_EQ(sent<Hello>(it.out).role, "ps");
  it.out.clear();
  it.task.from_coordinator({MessageType::kWelcome, Welcome{.incarnation = 4, .handled = 0}}, it.now,
                           it.out);
  EXPECT_THAT(take_text(it.out), Contains("say ps:0 is there after 3.0 s"));
  it.task.coordinator_closed(2, it.now);
  it.now += 1s;
  it.task.tick(it.now, it.out);
  EXPECT_THAT(take_text(it.out), ::testing::ElementsAre(connect));
  it.task.coordinator_connected(it.out);
  const Hello again = sent<Hello>(it.out);
  EXPECT_EQ(again.handled, 2u);
  EXPECT_EQ(again.ps_incarnation, 4u);
}

TEST(PsJobRounds, APsThatComesBackGoesOnWhereItWas) {
  Rounds it;
  it.greet(20, Rounds::hello_of_ps(1));
  EXPECT_TRUE(it.task.closed(20, {.why = "cut", .handled = 3}, it.now, it.out));
  Hello hello = Rounds::hello_of_ps(1);
  hello.handled = 1;
  EXPECT_THAT(it.greet(21, hello),
              ::testing::ElementsAre("21 is 20", "20 welcome", "20 goes on at 1"));
}

TEST(PsJobRounds, OnlyAPsOfTheJobMayAskPs0) {
  Rounds it;
  EXPECT_THAT(it.why_not(Rounds::hello_of_ps(2)), HasSubstr("a ps serves workers"));
  EXPECT_THAT(it.why_not(Rounds::hello_of_ps(0)), HasSubstr("a ps serves workers"));
  Hello hello = Rounds::hello_of_ps(1);
  hello.cluster_id = "other";
  EXPECT_THAT(it.why_not(hello), HasSubstr("cluster id 'job' here"));
  EXPECT_THAT(Rounds(1).why_not(Rounds::hello_of_ps(1)), HasSubstr("a ps serves workers"));
}

TEST(PsJobRounds, AContributionThatCannotBeIsRefused) {
  Rounds it;
  EXPECT_THAT(it.refusal(0, 0, Rounds::first_frame(1)), HasSubstr("to round 1, and 0 is open"));
  EXPECT_THAT(it.refusal(0, 1, Rounds::first_frame(-1)), HasSubstr("to round -1"));
  EXPECT_THAT(it.refusal(0, 2, Rounds::first_frame(0, -5)), HasSubstr("-5 examples"));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(it.refusal(0, 3, Rounds::first_frame(0, 1, nan)), HasSubstr("by the norm nan"));
}

TEST(PsJobRounds, ASecondContributionBeforeTheFirstIsDecidedIsRefused) {
  Rounds it;
  it.gives(0, 0);
  EXPECT_EQ(it.begin(0, 0, Rounds::first_frame(0)), Fate::kDrop) << "the same again";
  EXPECT_THAT(it.refusal(0, 1, Rounds::first_frame(0)), HasSubstr("has taken step 0"));
}

TEST(PsJobRounds, ADecisionOfAnotherRoundIsRefused) {
  Rounds it(1);
  const RoundContribution given{.worker = 2, .incarnation = 1, .examples = 1};
  const RoundDecision other{
      .closes = true, .round = 4, .contributors = {given}, .dropped = {}, .displaced = {}};
  EXPECT_THROW(it.task.from_coordinator({MessageType::kDecided, other}, it.now, it.out), Error);
}

TEST(PsJobRounds, WhoLeavesAndComesIsNamed) {
  Rounds it(0, 1);
  it.received(12, MessageType::kDone);
  EXPECT_THAT(take_text(it.out), Contains("say rounds go on without worker:2: 2 workers"));
  it.gives(0, 0);
  it.gives(1, 0);
  EXPECT_THAT(take_text(it.out), Contains("close round 0"));
  it.task.closed(11, {.why = "gone"}, it.now, it.out);
  EXPECT_THAT(take_text(it.out), Contains("say rounds go on without worker:1: 1 worker"));
  it.greet(30, PsMachine::hello_of(1, 2));
  it.received(30, MessageType::kDeclare, it.declare);
  EXPECT_THAT(take_text(it.out),
              Contains("say worker:1 takes part in rounds from 1 on: 2 workers"));
}

// The older process's declaration was still under way when the newer process joined.
TEST(PsJobRounds, AReplacedProcessDoesNotTakeThePlaceOfItsSuccessor) {
  Rounds it(0, 1);
  it.greet(20, Rounds::hello_of(2, 2));
  it.greet(30, Rounds::hello_of(2, 3));
  it.received(30, MessageType::kDeclare, it.declare);
  it.received(20, MessageType::kDeclare, it.declare);
  it.out.clear();
  it.gives(0, 0);
  it.gives(1, 0);
  const Fate fate = it.task.begin_step(30, 0, false, Rounds::first_frame(0));
  it.task.end_step(30, 0, fate, it.now, it.out);
  const auto* const decided = std::get_if<Outbox::Decide>(&it.out.actions().back());
  ASSERT_NE(decided, nullptr);
  ASSERT_EQ(decided->told.size(), 3u) << "what the successor gives counts";
  EXPECT_EQ(decided->told[2].to, 30u);
}

TEST(PsJobRounds, AtTheLastStepNobodyIsMissed) {
  Rounds it(0, 1);
  for (int worker = 0; worker < 3; ++worker) it.gives(worker, 0);
  it.out.clear();
  it.received(12, MessageType::kEndTraining);
  it.received(12, MessageType::kDone);
  EXPECT_THAT(take_text(it.out), Not(Contains(HasSubstr("go on without"))));
}

TEST(PsJobRounds, NobodyBeginsAgainWhileAWorkerTrainsThatTheChiefDoesNotReach) {
  Rounds it(0, 1, true);
  for (int worker : {0, 1}) it.gives(worker, 0);
  it.received(11, MessageType::kCommitted, CommittedRound{.round = 0, .contributors = {1}});
  it.out.clear();
  it.received(10, MessageType::kBeginAgain, BeginAgain{.unreached = {1, 2}});
  EXPECT_FALSE(it.task.begins_again());
  EXPECT_THAT(sent<std::string>(it.out),
              HasSubstr("worker:1 trains, and worker:0 does not reach it"));
}

TEST(PsJobRounds, TheChiefThatReachesTheWorkersThatHaveLostTheirValuesBeginsAgain) {
  Rounds it(0, 1, true);
  for (int worker : {0, 1}) it.gives(worker, 0);
  it.received(11, MessageType::kCommitted, CommittedRound{.round = 0, .contributors = {1}});
  it.received(10, MessageType::kBeginAgain, BeginAgain{.unreached = {2}});
  EXPECT_TRUE(it.task.begins_again());
}

}  // namespace
}  // namespace paceline
