// The group of an all-reduce whose steps ps tasks count, too: members that are cut off from these,
// or from each other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "params/protocol/collective_group.h"

namespace paceline {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A worker of three, each a member with values from the beginning.
class Member {
 public:
  explicit Member(int worker)
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
    group_.take_values(kEpoch, 5, now_, out_);
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
  /// The members of the epoch that it proposes; none: it proposes none.
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

/// Worker 3 of four, which is to join a group and reaches worker 0.
struct FarJoiner {
  FarJoiner() { group.connected(0, true, now, out); }
  void trains_with(int other) {
    GroupStatus status;
    status.standing = Standing::kMember;
    status.epoch = 1;
    status.step = 5;
    status.members = {0, other};
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
