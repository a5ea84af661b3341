// Tests of an all-reduce whose steps ps tasks count, too, when members are cut off from the ps
// tasks or from each other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "params/protocol/collective_group.h"

namespace paceline {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// One of three workers. It is a member from the beginning, and the others have values.
class Member {
 public:
  explicit Member(int worker, bool takes_values = true)
      : worker_(worker),
        group_({.worker = worker, .workers = 3, .join_timeout = 10s, .counted_by_ps = true}, now_) {
    for (const int other : others()) group_.connected(other, true, now_, out_);
    for (const int other : others()) receive(other, MessageType::kGroupStatus, member(other));
    const int proposer = others().front();
    receive(proposer, MessageType::kPropose, Proposal{kEpoch, {0, 1, 2}});
    group_.rested(now_, out_);
    receive(proposer, MessageType::kForm,
            Formation{.epoch = kEpoch,
                      .members = {0, 1, 2},
                      .step = 5,
                      .source = proposer,
                      .lacking = {worker},
                      .in_place = true,
                      .own_steps = {},
                      .unused = RecordSet().ranges(),
                      .held = {{}, {}, {}}});
    if (takes_values) group_.take_values(kEpoch, 5, now_, out_);
  }
  std::vector<int> others() const {
    std::vector<int> others;
    for (const int other : {0, 1, 2}) {
      if (other != worker_) others.push_back(other);
    }
    return others;
  }
  GroupStatus member(int worker) const {
    GroupStatus status;
    status.standing = Standing::kMember;
    status.epoch = kEpoch;
    status.step = 5;
    status.members = {0, 1, 2};
    for (const int other : {0, 1, 2}) {
      if (other != worker) status.connected.push_back(other);
    }
    return status;
  }
  void receive(int from, MessageType type, ControlMessage::Body body) {
    group_.received(from, {type, std::move(body)}, now_, out_);
  }
  void hear_that_it_is_cut_off(int worker) {
    GroupStatus status = member(worker);
    status.cut_off = true;
    receive(worker, MessageType::kGroupStatus, status);
  }
  void wait(Duration time) {
    for (const TimePoint until = now_ + time; now_ < until;) group_.tick(now_ += 250ms, out_);
  }
  /// The members of the last epoch that this member has proposed since the previous call; empty:
  /// none.
  std::vector<std::int32_t> proposed() {
    std::vector<std::int32_t> members;
    for (const Outbox::Action& action : out_.actions()) {
      const auto* const send = std::get_if<Outbox::Send>(&action);
      if (send == nullptr || send->message.type != MessageType::kPropose) continue;
      members = send->message.as<Proposal>().members;
    }
    out_.clear();
    return members;
  }

  static constexpr std::uint64_t kEpoch = std::uint64_t{7} << 32;
  const int worker_;
  TimePoint now_{1h};
  CollectiveGroup group_;
  Outbox out_;
};

TEST(CutOffMember, IsLeftOutAfterAWhile) {
  Member it(0);
  it.hear_that_it_is_cut_off(1);
  EXPECT_THAT(it.proposed(), ElementsAre());
  it.wait(1s);
  EXPECT_THAT(it.proposed(), ElementsAre(0, 2));
}

TEST(CutOffMember, StaysWhenAllAreCutOff) {
  Member it(0);
  for (const int other : {1, 2}) it.hear_that_it_is_cut_off(other);
  it.group_.set_cut_off(true, it.now_, it.out_);
  it.wait(20s);
  EXPECT_THAT(it.proposed(), ElementsAre());
}

TEST(CutOffMember, StaysWhenTheOthersHaveNoValues) {
  Member it(0, false);
  GroupStatus lacks = it.member(2);
  lacks.step = -1;
  it.receive(2, MessageType::kGroupStatus, lacks);
  it.hear_that_it_is_cut_off(1);
  it.wait(20s);
  EXPECT_THAT(it.proposed(), ElementsAre());
}

TEST(CutOffMember, LeavesTheProposalsToTheNextOne) {
  Member it(1);
  it.hear_that_it_is_cut_off(0);
  it.wait(1s);
  EXPECT_THAT(it.proposed(), ElementsAre(1, 2));
}

TEST(CutOffMember, CommitsNothingBeforeTheNextEpoch) {
  Member it(0);
  it.group_.begin({.examples = 8}, it.now_, it.out_);
  for (const int other : {1, 2}) {
    it.receive(other, MessageType::kCollectiveBegin,
               CollectiveBegin{.epoch = Member::kEpoch, .step = 5, .examples = 8});
  }
  it.group_.finish_sums(it.now_, it.out_);
  it.receive(1, MessageType::kSumsWhole, StepMark{Member::kEpoch, 5});
  it.group_.set_cut_off(true, it.now_, it.out_);
  it.receive(2, MessageType::kSumsWhole, StepMark{Member::kEpoch, 5});
  EXPECT_EQ(it.group_.step(), 5) << "the others may have begun another epoch";
  EXPECT_THAT(it.proposed(), ElementsAre());
  it.group_.set_cut_off(false, it.now_, it.out_);
  EXPECT_EQ(it.group_.step(), 5);
  EXPECT_THAT(it.proposed(), ElementsAre(0, 1, 2)) << "it asks them";
}

TEST(Joiner, ThatIsCutOffIsNotTaken) {
  Member it(0);
  GroupStatus joins;
  joins.connected = {0, 1};
  it.group_.disconnected(2, "it has died", it.now_, it.out_);
  it.group_.connected(2, true, it.now_, it.out_);
  it.proposed();
  joins.cut_off = true;
  it.receive(2, MessageType::kGroupStatus, joins);
  EXPECT_THAT(it.proposed(), ElementsAre());
  joins.cut_off = false;
  it.receive(2, MessageType::kGroupStatus, joins);
  EXPECT_THAT(it.proposed(), ElementsAre(0, 1, 2));
}

TEST(Parts, OfAGroupWaitUntilThePsTasksHaveCountedAStepOfOne) {
  Member it(2);
  GroupStatus others = it.member(0);
  others.epoch = Member::kEpoch << 1;
  others.members = {0, 1};
  it.receive(0, MessageType::kGroupStatus, others);
  EXPECT_EQ(it.group_.standing(), Standing::kMember) << "its own steps may count";
  others.counted = 6;
  it.receive(0, MessageType::kGroupStatus, others);
  EXPECT_EQ(it.group_.standing(), Standing::kJoining);
}

// Worker 1 agrees to the proposer's epoch, and then to a later epoch. The proposer has not heard of
// the later epoch when it forms its own with worker 1.
TEST(Epoch, ThatAMemberHearsOfTooLateIsFormedAgain) {
  Member proposer(0);
  proposer.group_.disconnected(2, "it has died", proposer.now_, proposer.out_);
  const std::uint64_t epoch = proposer.group_.proposed_epoch();
  proposer.group_.rested(proposer.now_, proposer.out_);
  Agreement agrees{.epoch = epoch, .highest = epoch, .step = 5};
  agrees.unused = RecordSet().ranges();
  proposer.receive(1, MessageType::kAgree, agrees);
  ASSERT_EQ(proposer.group_.epoch(), epoch);
  proposer.proposed();
  proposer.receive(1, MessageType::kAgree, Agreement{.epoch = epoch, .highest = epoch + 1});
  EXPECT_THAT(proposer.proposed(), ElementsAre(0, 1));
}

// The proposals of two workers arrive, first that of the higher one. Then the lower of the two
// workers retires.
TEST(Epoch, OfTheNextWorkerIsAgreedToWhenTheLowestHasGone) {
  Member it(2);
  it.receive(1, MessageType::kPropose, Proposal{(Member::kEpoch << 1) + 1, {1, 2}});
  it.receive(0, MessageType::kPropose, Proposal{Member::kEpoch << 1, {0, 1, 2}});
  it.group_.rested(it.now_, it.out_);
  EXPECT_EQ(it.group_.proposed_epoch(), Member::kEpoch << 1);
  GroupStatus retired = it.member(0);
  retired.standing = Standing::kRetired;
  it.receive(0, MessageType::kGroupStatus, retired);
  EXPECT_EQ(it.group_.proposed_epoch(), (Member::kEpoch << 1) + 1);
}

TEST(Epoch, IsAnsweredByAWorkerThatHasAgreedToAnotherOneMeanwhile) {
  TimePoint now{1h};
  Outbox out;
  CollectiveGroup joiner({.worker = 2, .workers = 3, .join_timeout = 10s}, now);
  for (const int other : {0, 1}) joiner.connected(other, true, now, out);
  const auto receive = [&](int from, MessageType type, ControlMessage::Body body) {
    joiner.received(from, {type, std::move(body)}, now, out);
  };
  receive(0, MessageType::kPropose, Proposal{Member::kEpoch, {0, 2}});
  joiner.rested(now, out);
  receive(1, MessageType::kPropose, Proposal{Member::kEpoch + 1, {1, 2}});
  joiner.rested(now, out);
  out.clear();
  receive(0, MessageType::kForm,
          Formation{.epoch = Member::kEpoch,
                    .members = {0, 2},
                    .step = 5,
                    .source = 0,
                    .lacking = {2},
                    .in_place = true,
                    .own_steps = {},
                    .unused = RecordSet().ranges(),
                    .held = {{}, {}}});
  const auto* const answer = std::get_if<Outbox::Send>(&out.actions().back());
  ASSERT_NE(answer, nullptr);
  EXPECT_EQ(answer->to, PeerId(0));
  ASSERT_EQ(answer->message.type, MessageType::kAgree);
  EXPECT_EQ(answer->message.as<Agreement>().epoch, Member::kEpoch);
  EXPECT_EQ(answer->message.as<Agreement>().highest, Member::kEpoch + 1);
}

// Until the ps tasks have counted a step, the others may be going on without this worker, with
// other values.
TEST(Values, AreHandedOnOnceThePsTasksHaveCountedTheirSteps) {
  Member it(0);
  it.group_.disconnected(2, "it has died", it.now_, it.out_);
  it.group_.connected(2, true, it.now_, it.out_);
  GroupStatus joins;
  joins.connected = {0, 1};
  it.proposed();
  it.receive(2, MessageType::kGroupStatus, joins);
  const std::uint64_t epoch = it.group_.proposed_epoch();
  it.group_.rested(it.now_, it.out_);
  Agreement agrees{.epoch = epoch, .highest = epoch, .step = 5};
  agrees.unused = RecordSet().ranges();
  it.receive(1, MessageType::kAgree, agrees);
  agrees.step = -1;
  it.receive(2, MessageType::kAgree, agrees);
  ASSERT_EQ(it.group_.epoch(), epoch);
  EXPECT_THAT(it.group_.lacking(), ElementsAre());
  it.group_.set_counted(5, it.now_, it.out_);
  EXPECT_THAT(it.group_.lacking(), ElementsAre(2));
}

// Worker 0 has not heard of the later epoch, so its status still names this worker as a member.
TEST(Parts, OfAGroupEndAlsoWhenTheOthersHaveNotHeardOfThem) {
  Member it(2);
  it.group_.disconnected(0, "it was cut", it.now_, it.out_);
  it.receive(1, MessageType::kPropose, Proposal{Member::kEpoch << 1, {1, 2}});
  it.group_.rested(it.now_, it.out_);
  it.receive(1, MessageType::kForm,
             Formation{.epoch = Member::kEpoch << 1,
                       .members = {1, 2},
                       .step = 5,
                       .source = 1,
                       .lacking = {},
                       .in_place = true,
                       .own_steps = {},
                       .unused = RecordSet().ranges(),
                       .held = {{}, {}}});
  it.group_.connected(0, true, it.now_, it.out_);
  GroupStatus waits = it.member(0);
  waits.counted = 5;
  it.receive(0, MessageType::kGroupStatus, waits);
  EXPECT_EQ(it.group_.standing(), Standing::kMember);
  waits.step = waits.counted = 6;
  it.receive(0, MessageType::kGroupStatus, waits);
  EXPECT_EQ(it.group_.standing(), Standing::kJoining);
}

TEST(Epoch, IsFollowedByAMemberThatHasNotHeardThatItWasFormed) {
  Member it(2);
  GroupStatus formed = it.member(1);
  formed.epoch = Member::kEpoch << 1;
  formed.members = {1, 2};
  it.receive(1, MessageType::kPropose, Proposal{Member::kEpoch << 2, {1, 2}});
  EXPECT_FALSE(it.group_.proposes()) << "worker 0 lives, and proposes";
  it.receive(1, MessageType::kGroupStatus, formed);
  EXPECT_EQ(it.group_.proposed_epoch(), Member::kEpoch << 2);
}

/// Worker 3 of four joins a group, and reaches only worker 0.
struct FarJoiner {
  FarJoiner() { group.connected(0, true, now, out); }
  void trains_with(int other, bool reaches = true) {
    GroupStatus status;
    status.standing = Standing::kMember;
    status.epoch = 1;
    status.step = 5;
    status.members = {0, other};
    if (reaches) status.connected = {other};
    group.received(0, {MessageType::kGroupStatus, status}, now, out);
  }
  void wait(Duration time) {
    for (const TimePoint until = now + time; now < until;) group.tick(now += 250ms, out);
  }

  TimePoint now{1h};
  Outbox out;
  CollectiveGroup group{{.worker = 3, .workers = 4, .join_timeout = 10s}, now};
};

TEST(Joiner, ThatDoesNotReachAMemberNamesItAtTheJoinTimeout) {
  FarJoiner it;
  it.trains_with(1);
  it.wait(9500ms);
  EXPECT_EQ(it.group.failure(), "");
  it.wait(1s);
  EXPECT_THAT(it.group.failure(), HasSubstr("worker:3 could not reach worker:1 for 10 s "
                                            "(--join-timeout), which worker:0 reaches"));
}

TEST(Joiner, WaitsForAMemberThatTheOthersDoNotReachEither) {
  FarJoiner it;
  it.trains_with(1, false);
  it.wait(15s);
  EXPECT_EQ(it.group.failure(), "");
}

TEST(Joiner, ThatDoesNotReachNowOneMemberAndThenAnotherGoesOnTrying) {
  FarJoiner it;
  it.trains_with(1);
  it.wait(6s);
  it.trains_with(2);
  it.wait(6s);
  EXPECT_EQ(it.group.failure(), "");
  it.wait(5s);
  EXPECT_THAT(it.group.failure(), HasSubstr("worker:3 could not reach worker:2"));
}

}  // namespace
}  // namespace paceline
