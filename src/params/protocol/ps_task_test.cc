#include "params/protocol/ps_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/error_of.h"
#include "params/protocol/testing/outbox_text.h"
#include "params/protocol/testing/ps_machine.h"
#include "params/wire/task_state.h"

namespace paceline {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using namespace std::chrono_literals;

using Machine = PsMachine;

StateBytes state_of(int worker, std::int64_t step) {
  return std::make_shared<const std::vector<std::byte>>(
      encode(TaskState{.worker = worker, .step = step, .position = {}, .local = {}}));
}

TEST(PsTask, RefusesAHelloThatIsMeantForAnother) {
  Machine it;
  Hello hello = Machine::hello_of(1);
  hello.version = 1;
  EXPECT_THAT(it.why_not(hello), HasSubstr("ps:0 refuses: protocol version "));
  hello = Machine::hello_of(1);
  hello.role = "ps";
  EXPECT_EQ(it.why_not(hello), "ps:0 refuses: a ps serves workers; the other is ps:1");
  hello = Machine::hello_of(1);
  hello.cluster_id = "other";
  EXPECT_EQ(it.why_not(hello), "ps:0 refuses: cluster id 'job' here, 'other' there");
  PsTaskOptions options = Machine::options();
  options.cluster_id = "ps=a:1;worker=b:1,b:2,b:3";
  hello.cluster_id = "ps=a:1;worker=b:1,b:2,b:4";
  EXPECT_EQ(Machine(options).why_not(hello),
            "ps:0 refuses: the cluster has other addresses: worker:2 is b:3 here, b:4 there");
  hello = Machine::hello_of(1);
  hello.ps = 2;
  EXPECT_EQ(it.why_not(hello), "ps:0 refuses: this is ps:0, the other takes it for ps:2");
  hello = Machine::hello_of(1);
  hello.workers = 5;
  EXPECT_EQ(it.why_not(hello), "ps:0 refuses: the cluster has 3 workers here, 5 there");
  EXPECT_THAT(it.why_not(Machine::hello_of(3)), HasSubstr("worker:3 is not in the cluster spec"));
  EXPECT_TRUE(it.task.all_gone());
}

TEST(PsTask, RefusesAWorkerWhoseFlagsAreNotTheChiefs) {
  Machine it;
  Hello chief = Machine::hello_of(0), other = Machine::hello_of(1);
  chief.flags = {"--accumulate\t1"};
  other.flags = {"--accumulate\t4"};
  it.greet(11, other);
  it.greet(10, chief);
  it.received(11, MessageType::kDeclare, it.declare);
  EXPECT_THAT(take_text(it.out), IsEmpty()) << "the chief says what is right";
  it.received(10, MessageType::kDeclare, it.declare);
  EXPECT_THAT(take_text(it.out),
              IsSupersetOf({"10 declared", "11 refuse",
                            "warn refused 11: the chief's --accumulate is 1, that of worker:1 is 4",
                            "close 11"}));
}

TEST(PsTask, NothingComesBeforeAHelloAndNoSecondOne) {
  Machine it;
  it.accept(1);
  EXPECT_EQ(error_of(ErrorCode::kDataLoss, [&] { it.received(1, MessageType::kDone); }),
            "[ps] done before a hello");
  it.received(1, MessageType::kHello, Machine::hello_of(0));
  EXPECT_EQ(error_of(ErrorCode::kDataLoss,
                     [&] { it.received(1, MessageType::kHello, Machine::hello_of(0)); }),
            "[ps] a second hello");
}

TEST(PsTask, OfAnyJobItServesOneAndIsBusyForAnother) {
  PsTaskOptions options = Machine::options();
  options.any_job = true;
  options.cluster_id.clear();
  Machine it(options);
  Hello hello = Machine::hello_of(0);
  hello.workers = 2;
  EXPECT_EQ(it.task.id(), "");
  EXPECT_THAT(it.greet(1, hello), ElementsAre("say job job begins: 2 workers, and this is ps:0",
                                              "1 welcome", "1 goes on at 0"));
  hello.cluster_id = "other";
  EXPECT_THAT(it.greet(2, hello), ElementsAre("2 busy", "close 2"));
  EXPECT_FALSE(it.task.given_up());
  it.task.closed(1, {.why = "gone", .broken = true}, it.now, it.out);
  EXPECT_THAT(it.greet(3, hello), ElementsAre("3 busy", "close 3"));
  EXPECT_TRUE(it.task.given_up()) << "nobody is there any more";
  EXPECT_EQ(it.task.end(it.now), Membership::End::kAbandoned);
}

TEST(PsTask, AnOlderConnectionThatHasNotEndedIsClosedAndTheWorkerComesAgain) {
  Machine it;
  it.start(1);
  Hello hello = Machine::hello_of(0);
  hello.epoch = 2;
  EXPECT_THAT(it.greet(20, hello), ElementsAre("close 10", "20 busy", "close 20"));
  EXPECT_TRUE(it.task.closed(10, {.why = "cut"}, it.now, it.out));
  EXPECT_THAT(it.greet(21, hello), Contains("10 welcome"));
}

TEST(PsTask, AWorkerWhoseConnectionWasCutGoesOnWhereItWas) {
  Machine it;
  it.start(2);
  EXPECT_EQ(it.task.begin_step(11, 0), Fate::kApply);
  EXPECT_TRUE(it.task.closed(11, {.why = "it was cut", .handled = 17}, it.now, it.out));
  EXPECT_THAT(take_text(it.out),
              ElementsAre("warn lost 11: it was cut; it may come back within 30 s "
                          "(--reconnect-timeout)"));
  it.now += 12s;
  Hello hello = Machine::hello_of(1);
  hello.epoch = 3;
  hello.handled = 5;
  it.out.clear();
  it.accept(20);
  it.received(20, MessageType::kHello, hello);
  EXPECT_EQ(sent<Welcome>(it.out).handled, 17u);
  EXPECT_THAT(take_text(it.out), ElementsAre("20 is 11", "say worker:1 is back after 12.0 s",
                                             "11 welcome", "11 goes on at 5"));
  it.task.end_step(11, 0, Fate::kApply, it.now, it.out);
  EXPECT_EQ(it.task.global_step(), 1);
  EXPECT_EQ(it.task.worker(20), -1) << "that connection is the older one's now";
}

// The worker's first welcome was lost with its connection, so the worker does not know that it has
// joined.
TEST(PsTask, AWorkerThatWasNotToldOfItsWelcomeComesBackToo) {
  Machine it;
  it.greet(11, Machine::hello_of(1));
  it.task.closed(11, {.why = "cut"}, it.now, it.out);
  EXPECT_THAT(it.greet(20, Machine::hello_of(1)), Contains("11 goes on at 0"));
}

TEST(PsTask, AWorkerThatDoesNotComeBackInTimeIsLost) {
  Machine it;
  it.start(2);
  it.task.closed(11, {.why = "cut"}, it.now, it.out);
  it.out.clear();
  EXPECT_EQ(it.task.tick(it.now, it.out), it.now + 30s);
  EXPECT_THAT(take_text(it.out), IsEmpty());
  it.now += 30s;
  it.task.tick(it.now, it.out);
  EXPECT_THAT(take_text(it.out), ElementsAre("warn gives up 11: it did not come back within 30 s "
                                             "(--reconnect-timeout)",
                                             "forget 11"));
  Hello hello = Machine::hello_of(1);
  hello.epoch = 3;
  it.accept(20);
  it.received(20, MessageType::kHello, hello);
  EXPECT_THAT(sent<std::string>(it.out), HasSubstr("which is not known"));
}

TEST(PsTask, AWorkerThatHasLeftComesBackToHearSoInSilence) {
  Machine it;
  it.start(2);
  it.received(11, MessageType::kGoodbye);
  it.task.closed(11, {.why = "cut"}, it.now, it.out);
  it.out.clear();
  Hello hello = Machine::hello_of(1);
  hello.epoch = 3;
  it.accept(20);
  it.received(20, MessageType::kHello, hello);
  EXPECT_THAT(take_text(it.out), ElementsAre("20 refuse", "close 20"));
}

TEST(PsTask, ANewerIncarnationReplacesOneThatIsCutOff) {
  Machine it;
  it.start(2);
  it.task.closed(11, {.why = "cut"}, it.now, it.out);
  Hello hello = Machine::hello_of(1, 2);
  hello.process = "pid 4711 on host b";
  EXPECT_THAT(it.greet(21, hello),
              ElementsAre("warn ends 11: a newer process (pid 4711 on host b) took its place",
                          "forget 11", "21 welcome", "21 goes on at 0"));
  Hello older = Machine::hello_of(1);
  older.epoch = 3;
  it.accept(22);
  it.received(22, MessageType::kHello, older);
  EXPECT_THAT(sent<std::string>(it.out),
              HasSubstr("a newer worker:1 (pid 4711 on host b) took this one's place"));
}

TEST(PsTask, TheNameOfAProcessGivesATerminalNoCommands) {
  Machine it;
  it.start(2);
  Hello hello = Machine::hello_of(1, 2);
  hello.process = "pid 7\x1b[2J\non b";
  it.accept(21);
  it.received(21, MessageType::kHello, hello);
  EXPECT_EQ(sent<std::string>(it.out), "a newer worker:1 (pid 7?[2J?on b) took this one's place");
}

TEST(PsTask, ADisplacedWorkerIsToldWhoTookItsPlace) {
  Machine it;
  it.start(2);
  Hello hello = Machine::hello_of(1, 2);
  hello.process = "pid 4711 on host b";
  it.accept(21);
  it.received(21, MessageType::kHello, hello);
  EXPECT_EQ(sent<std::string>(it.out),
            "a newer worker:1 (pid 4711 on host b) took this one's place");
  EXPECT_THAT(take_text(it.out), IsSupersetOf({"11 refuse", "close 11", "21 welcome"}));
  EXPECT_FALSE(it.task.closed(11, {.why = "closed"}, it.now, it.out));
  EXPECT_THAT(take_text(it.out), IsEmpty()) << "its end is no loss";
}

TEST(PsTask, WhoSaysWhatMustNotBeSaidMayNotComeBack) {
  Machine it;
  it.start(2);
  EXPECT_FALSE(it.task.closed(11, {.why = "garbage", .broken = true}, it.now, it.out));
  EXPECT_THAT(take_text(it.out), ElementsAre("warn lost 11: garbage"));
}

TEST(PsTask, WaitsForTheChiefsVariablesAndComparesTheOthers) {
  Machine it;
  Declare other = it.declare;
  other.aggregation = {AggregationKind::kBounded, 2};
  it.greet(11, Machine::hello_of(1));
  it.greet(12, Machine::hello_of(2));
  it.greet(10, Machine::hello_of(0));
  it.received(11, MessageType::kDeclare, it.declare);
  it.received(12, MessageType::kDeclare, other);
  EXPECT_THAT(take_text(it.out), IsEmpty());
  EXPECT_EQ(it.taken, 0);
  EXPECT_THAT(
      error_of(ErrorCode::kDataLoss, [&] { it.received(11, MessageType::kDeclare, it.declare); }),
      HasSubstr("declared twice"));
  EXPECT_EQ(error_of(ErrorCode::kFailedPrecondition, [&] { it.task.check_agreed(11, false); }),
            "[ps] the variables are not agreed on yet");
  it.received(10, MessageType::kDeclare, it.declare);
  EXPECT_EQ(it.taken, 1);
  EXPECT_EQ(sent<std::string>(it.out),
            "ps:0 refuses: the chief's --strategy is async, that of worker:2 is ssp with "
            "staleness 2");
  EXPECT_THAT(take_text(it.out),
              ElementsAre("10 shares", "10 declared", "10 job_state", "11 shares", "11 declared",
                          "11 job_state", "12 refuse",
                          "warn refused 12: the chief's --strategy is async, that of worker:2 is "
                          "ssp with staleness 2",
                          "close 12"));
  EXPECT_EQ(error_of(ErrorCode::kFailedPrecondition, [&] { it.task.begin_step(11, 0); }),
            "[ps] the variables are not initialised yet");
  EXPECT_EQ(error_of(ErrorCode::kFailedPrecondition,
                     [&] { it.received(11, MessageType::kWriteEnd, std::int64_t{0}); }),
            "[ps] only the chief initialises");
  it.received(10, MessageType::kWriteEnd, std::int64_t{30});
  EXPECT_THAT(take_text(it.out), ElementsAre("10 written", "10 initialised", "11 initialised"));
  EXPECT_EQ(it.task.global_step(), 30);
  EXPECT_EQ(it.task.begin_step(11, 0), Fate::kApply);
}

TEST(PsTask, APeerThatSaysNothingIsGivenUp) {
  Machine it;
  it.accept(1);
  EXPECT_EQ(it.task.tick(it.now + 1s, it.out), it.now + 10s);
  EXPECT_THAT(take_text(it.out), IsEmpty());
  it.task.tick(it.now + 10s, it.out);
  EXPECT_THAT(take_text(it.out),
              ElementsAre("warn gives up 1: it has said nothing since it connected", "close 1"));
  it.task.tick(it.now + 11s, it.out);
  EXPECT_THAT(take_text(it.out), IsEmpty());
}

TEST(PsTask, TooManyThatSayNothingMakeRoomTheFirstFirst) {
  Machine it;
  it.greet(1, Machine::hello_of(0));
  for (PeerId peer = 2; peer < 66; ++peer) it.accept(peer);
  EXPECT_THAT(take_text(it.out), IsEmpty());
  it.accept(66);
  EXPECT_THAT(take_text(it.out),
              ElementsAre("warn gives up 2: more connections have come than can be listened to, "
                          "and it has said nothing",
                          "close 2"));
  it.accept(67);
  EXPECT_THAT(take_text(it.out), Contains("close 3"));
}

TEST(PsTask, AReplacedIncarnationIsToldNothingAnyMore) {
  Machine it;
  it.greet(10, Machine::hello_of(0));
  it.greet(11, Machine::hello_of(1, 1));
  it.received(10, MessageType::kDeclare, it.declare);
  it.received(11, MessageType::kDeclare, it.declare);
  EXPECT_THAT(it.greet(21, Machine::hello_of(1, 2)),
              ElementsAre("warn ends 11: a newer process () took its place", "11 refuse",
                          "close 11", "21 welcome", "21 goes on at 0"));
  it.received(21, MessageType::kDeclare, it.declare);
  it.out.clear();
  it.received(10, MessageType::kWriteEnd, std::int64_t{0});
  EXPECT_THAT(take_text(it.out), ElementsAre("10 written", "10 initialised", "21 initialised"));
  EXPECT_EQ(it.task.begin_step(11, 0), Fate::kDrop);
  it.task.ask_to_leave(it.out);
  EXPECT_THAT(take_text(it.out), ElementsAre("10 stop", "21 stop"));
  it.task.closed(11, {.why = "gone"}, it.now, it.out);
  EXPECT_EQ(it.task.begin_step(21, 0), Fate::kApply) << "the end of the older changes nothing";
  EXPECT_THAT(it.greet(31, Machine::hello_of(1, 1)), Contains("31 refuse"));
}

TEST(PsTask, ASaveAsksForTheStatesThatAreNotKnown) {
  Machine it;
  it.start();
  it.make_step(11, 0);
  it.received(12, MessageType::kTaskState, state_of(2, 0));
  EXPECT_EQ(
      error_of(ErrorCode::kFailedPrecondition, [&] { it.received(11, MessageType::kMark, {}, 5); }),
      "[ps] mark from worker:1, not from the chief");
  it.out.clear();
  it.received(10, MessageType::kMark, {}, 5);
  const auto mark = std::get<Outbox::Mark>(it.out.actions().back());
  EXPECT_EQ(mark.what.global_step, 1);
  EXPECT_THAT(mark.what.workers,
              ElementsAre(SavedShard::Worker{0, false}, SavedShard::Worker{1, true},
                          SavedShard::Worker{0, false}));
  EXPECT_THAT(take_text(it.out), ElementsAre("11 ask_state", "10 task_state", "mark"));
  it.received(11, MessageType::kTaskState, state_of(1, 1), 5);
  EXPECT_THAT(take_text(it.out), ElementsAre("10 task_state"));
  it.received(11, MessageType::kTaskState, state_of(1, 1), 5);
  EXPECT_THAT(take_text(it.out), IsEmpty()) << "it is asked once";
  EXPECT_EQ(error_of(ErrorCode::kDataLoss,
                     [&] { it.received(11, MessageType::kTaskState, state_of(2, 1)); }),
            "[ps] a state of worker:2 from worker:1");
  it.received(10, MessageType::kSaveShard, std::string("/save"), 5);
  it.received(10, MessageType::kFindFile, FindFile{});
  EXPECT_THAT(take_text(it.out), ElementsAre("save", "find"));
}

TEST(PsTask, AllAreToldTheStateOfTheJobWhenItChanges) {
  Machine it;
  it.start();
  it.make_step(10, 0);
  it.make_step(11, 0);
  EXPECT_THAT(take_text(it.out), ElementsAre("10 step_done", "11 step_done"));
  it.make_step(12, 0);
  EXPECT_EQ(sent<JobState>(it.out), (JobState{.all_warm = true, .all_done = false}));
  EXPECT_THAT(take_text(it.out),
              ElementsAre("10 job_state", "11 job_state", "12 job_state", "12 step_done"));
  it.received(10, MessageType::kDone);
  EXPECT_EQ(sent<JobState>(it.out), (JobState{.all_warm = true, .any_done = true}));
  it.out.clear();
  it.received(11, MessageType::kGoodbye);
  EXPECT_THAT(take_text(it.out), IsEmpty());
  it.task.closed(12, {.why = "cut"}, it.now, it.out);
  EXPECT_EQ(sent<JobState>(it.out),
            (JobState{.all_warm = true, .any_done = true, .all_done = true}));
  EXPECT_THAT(take_text(it.out),
              ElementsAre("warn lost 12: cut; it may come back within 30 s (--reconnect-timeout)",
                          "10 job_state"));
}

TEST(PsTask, AWorkerEndsTheTrainingOfAll) {
  Machine it;
  it.start();
  it.received(11, MessageType::kEndTraining);
  EXPECT_TRUE(sent<JobState>(it.out).ended);
  EXPECT_THAT(take_text(it.out),
              ElementsAre("say worker:1 ends the training of all workers at global step 0",
                          "10 job_state", "11 job_state", "12 job_state"));
  it.received(10, MessageType::kEndTraining);
  EXPECT_THAT(take_text(it.out), IsEmpty()) << "all know it";
}

TEST(PsTask, UnderBoundedStalenessWhoLeavesIsWaitedForNoMore) {
  Machine it;
  it.declare.aggregation = {AggregationKind::kBounded, 0};
  it.start(2);
  it.make_step(10, 0);
  EXPECT_THAT(take_text(it.out), ElementsAre("10 step_done"));
  it.received(11, MessageType::kGoodbye);
  EXPECT_EQ(sent<std::int64_t>(it.out), 1);
  EXPECT_THAT(take_text(it.out), ElementsAre("10 step_limit"));
}

// With --seconds, a worker that is done makes untimed steps until the time of all workers is over.
TEST(PsTask, UnderBoundedStalenessWhoIsDoneMayGoOn) {
  Machine it;
  it.declare.aggregation = {AggregationKind::kBounded, 0};
  it.start(2);
  it.make_step(10, 0);
  it.received(10, MessageType::kDone);
  it.out.clear();
  it.make_step(11, 0);
  EXPECT_THAT(take_text(it.out), ElementsAre("11 step_done", "10 step_limit", "11 step_limit"));
}

// The connection of the worker that is done was cut, and the worker has come back.
TEST(PsTask, UnderBoundedStalenessNobodyWaitsForWhoWasDone) {
  Machine it;
  it.declare.aggregation = {AggregationKind::kBounded, 0};
  it.start(2);
  it.received(11, MessageType::kDone);
  it.task.closed(11, {.why = "it was cut"}, it.now, it.out);
  Hello hello = Machine::hello_of(1);
  hello.epoch = 3;
  it.accept(20);
  it.received(20, MessageType::kHello, hello);
  it.out.clear();
  it.make_step(10, 0);
  EXPECT_THAT(take_text(it.out), Contains("10 step_limit"));
}

TEST(PsTask, ToStopItNeedsSomebodyToTell) {
  Machine it;
  it.greet(10, Machine::hello_of(0));
  EXPECT_FALSE(it.task.ask_to_leave(it.out)) << "it has not agreed yet";
  it.received(10, MessageType::kDeclare, it.declare);
  it.out.clear();
  EXPECT_TRUE(it.task.ask_to_leave(it.out));
  EXPECT_THAT(take_text(it.out), ElementsAre("10 stop"));
}

TEST(PsTask, AWorkerThatKnowsAnOlderProcessIsTold) {
  Machine it;
  Hello hello = Machine::hello_of(1);
  hello.ps_incarnation = 8;
  EXPECT_THAT(it.greet(11, hello),
              ElementsAre("11 restarted", "say tells worker:1 that it was restarted", "close 11"));
  EXPECT_EQ(it.task.worker(11), -1);
  hello.ps_incarnation = 9;
  hello.incarnation = 2;
  EXPECT_THAT(it.greet(12, hello), Contains("12 welcome"));
}

TEST(PsTask, TheChiefAsksItToBeginAgain) {
  Machine it;
  it.start();
  EXPECT_THROW(it.received(11, MessageType::kBeginAgain, BeginAgain{}), Error);
  EXPECT_FALSE(it.task.begins_again());
  it.received(10, MessageType::kBeginAgain, BeginAgain{});
  EXPECT_TRUE(it.task.begins_again());
  // Until another PsTask takes the place of this one, a worker that has trained with this one is
  // told that its values are lost.
  it.out.clear();
  Hello hello = Machine::hello_of(1);
  hello.ps_incarnation = 9;
  EXPECT_THAT(it.greet(21, hello), Contains("21 restarted"));
}

TEST(PsTask, TheEpochOfOneThatTakesThePlaceOfAnotherIsNewer) {
  PsTaskOptions options = Machine::options();
  options.first_epoch = 17;
  Machine it(options);
  EXPECT_EQ(it.task.epoch(), 17u);
  it.greet(11, Machine::hello_of(1));
  EXPECT_GT(it.task.epoch(), 17u);
}

}  // namespace
}  // namespace paceline
