// The group of an all-reduce, message by message. virtual_group_test.cc runs whole groups with
// faults in virtual time.
#include "params/protocol/collective_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline {
namespace {

using namespace std::chrono_literals;

// Worker 0 of two, and the messages of the other.
class ChiefOfTwo : public ::testing::Test {
 protected:
  ChiefOfTwo() : group_({.worker = 0, .workers = 2, .join_timeout = 10s}, now_) {}
  void receive(MessageType type, ControlMessage::Body body) {
    group_.received(1, {type, std::move(body)}, now_, out_);
  }
  /// Makes both workers members, at step 0. Worker 1 agrees without having values.
  void form() {
    group_.connected(1, true, now_, out_);
    receive(MessageType::kGroupStatus, seen_by_the_other());
    group_.initialise(0, {}, now_, out_);
    group_.rested(now_, out_);
    const std::uint64_t epoch = last_proposal();
    receive(MessageType::kAgree,
            Agreement{.epoch = epoch, .highest = epoch, .step = -1, .in_place = true});
    receive(MessageType::kGroupStatus, member());
  }
  static GroupStatus seen_by_the_other() {
    GroupStatus status;
    status.connected = {0};
    return status;
  }
  std::uint64_t last_proposal() const {
    std::uint64_t epoch = 0;
    for (const Outbox::Action& action : actions()) {
      const auto* const send = std::get_if<Outbox::Send>(&action);
      if (send != nullptr && send->message.type == MessageType::kPropose) {
        epoch = send->message.as<Proposal>().epoch;
      }
    }
    return epoch;
  }
  GroupStatus member() const {
    return {.standing = Standing::kMember,
            .epoch = group_.epoch(),
            .step = group_.step(),
            .members = {0, 1},
            .connected = {0}};
  }
  bool sent(MessageType type) const {
    for (const Outbox::Action& action : actions()) {
      const auto* const send = std::get_if<Outbox::Send>(&action);
      if (send != nullptr && send->message.type == type) return true;
    }
    return false;
  }
  const std::vector<Outbox::Action>& actions() const { return const_cast<Outbox&>(out_).actions(); }

  TimePoint now_{1h};
  CollectiveGroup group_;
  Outbox out_;
};

TEST_F(ChiefOfTwo, BeginsTheTrainingOnceItHasMetAll) {
  EXPECT_FALSE(group_.founded());
  group_.connected(1, true, now_, out_);
  EXPECT_FALSE(group_.founded()) << "the other may not see this one yet";
  receive(MessageType::kGroupStatus, seen_by_the_other());
  EXPECT_TRUE(group_.founded());
}

TEST_F(ChiefOfTwo, BeginsAloneAfterTheJoinTimeout) {
  for (int i = 0; i < 50; ++i) group_.tick(now_ += 250ms, out_);
  EXPECT_TRUE(group_.founded());
  group_.initialise(3, {}, now_, out_);
  EXPECT_TRUE(group_.may_begin());
  EXPECT_EQ(group_.step(), 3);
}

TEST_F(ChiefOfTwo, SendsItsValuesToTheOther) {
  form();
  EXPECT_EQ(group_.members(), (std::vector<std::int32_t>{0, 1}));
  EXPECT_THAT(group_.lacking(), ::testing::ElementsAre(1));
  EXPECT_TRUE(group_.in_place());
}

TEST_F(ChiefOfTwo, CommitsAStepOnceAllSumsAreWhole) {
  form();
  group_.begin({.examples = 8}, now_, out_);
  EXPECT_FALSE(group_.started());
  const CollectiveBegin other{.epoch = group_.epoch(), .step = 0, .examples = 8};
  receive(MessageType::kCollectiveBegin, other);
  EXPECT_TRUE(group_.started());
  group_.finish_sums(now_, out_);
  EXPECT_EQ(group_.step(), 0);
  receive(MessageType::kSumsWhole, StepMark{group_.epoch(), 0});
  EXPECT_EQ(group_.step(), 1);
  EXPECT_TRUE(sent(MessageType::kCommit));
}

TEST_F(ChiefOfTwo, ReducesAStepAgainWithoutAWorkerThatIsLost) {
  form();
  group_.begin({.examples = 8}, now_, out_);
  group_.disconnected(1, "it has died", now_, out_);
  EXPECT_TRUE(group_.must_rest());
  group_.rested(now_, out_);
  EXPECT_EQ(group_.members(), (std::vector<std::int32_t>{0}));
  EXPECT_TRUE(group_.started()) << "with its own contribution alone";
  group_.finish_sums(now_, out_);
  EXPECT_EQ(group_.step(), 1);
}

// Worker 0 of three was stopped. For a while, worker 0 and the other two do not see each other.
TEST(Parts, OfAGroupPreferTheLargerWhenTheyMeet) {
  const TimePoint now{1h};
  const std::vector<std::int32_t> all = {0, 1, 2};
  const auto epoch_without = [&](int worker, const std::vector<int>& lost, Duration stopped) {
    CollectiveGroup group({.worker = worker, .workers = 3, .join_timeout = 10s}, now);
    Outbox out;
    for (const int other : all) {
      if (other != worker) group.connected(other, true, now, out);
    }
    const Formation formation{.epoch = 1,
                              .members = all,
                              .step = 5,
                              .source = 2,
                              .lacking = {},
                              .in_place = true,
                              .own_steps = {},
                              .unused = RecordSet().ranges(),
                              .held = {{}, {}, {}}};
    const int proposer = worker == 0 ? 1 : 0;
    group.received(proposer, {MessageType::kPropose, Proposal{1, all}}, now, out);
    group.rested(now, out);
    group.received(proposer, {MessageType::kForm, formation}, now, out);
    EXPECT_EQ(group.members(), all);
    for (const int other : lost) group.disconnected(other, "it is silent", now + stopped, out);
    for (Duration later = 0s; later < 11s; later += 250ms) group.tick(now + stopped + later, out);
    return group.proposed_epoch();
  };
  const std::uint64_t of_one = epoch_without(0, {1, 2}, 8s);
  EXPECT_GT(of_one, 1u);
  EXPECT_GT(epoch_without(1, {0}, 0s), of_one);
}

TEST_F(ChiefOfTwo, AStepOfAnotherTrainingFails) {
  form();
  group_.begin({.examples = 8, .training = 1}, now_, out_);
  receive(MessageType::kCollectiveBegin,
          CollectiveBegin{.epoch = group_.epoch(), .step = 0, .examples = 8, .training = 2});
  EXPECT_NE(group_.failure().find("worker:0 and worker:1 make step 0 of different trainings"),
            std::string::npos);
}

TEST_F(ChiefOfTwo, MessagesThatMakeNoSenseAreRefused) {
  form();
  EXPECT_THROW(receive(MessageType::kPropose, Proposal{.epoch = 1u << 30, .members = {0, 7}}),
               Error);
  EXPECT_THROW(receive(MessageType::kPropose, Proposal{.epoch = 1u << 30, .members = {1, 0}}),
               Error);
  EXPECT_THROW(receive(MessageType::kForm, Formation()), Error);
  EXPECT_THROW(receive(MessageType::kCollectiveBegin, CollectiveBegin{.examples = -1}), Error);
  EXPECT_THROW(receive(MessageType::kGoodbye, {}), Error);
}

// The joiner's step thread may already be reading the values that the joiner was given, so no other
// values may overwrite them.
TEST(Joiner, KeepsTheValuesThatCameBetweenItsAgreementAndTheNextEpoch) {
  const TimePoint now{1h};
  CollectiveGroup group({.worker = 1, .workers = 2, .join_timeout = 10s}, now);
  Outbox out;
  const auto propose_and_form = [&](std::uint64_t epoch, bool values_come_between) {
    const std::vector<std::int32_t> both = {0, 1};
    group.received(0, {MessageType::kPropose, Proposal{epoch, both}}, now, out);
    group.rested(now, out);
    if (values_come_between) group.take_values(std::uint64_t{1} << 16, 5, now, out);
    group.received(0,
                   {MessageType::kForm, Formation{.epoch = epoch,
                                                  .members = both,
                                                  .step = 5,
                                                  .source = 0,
                                                  .lacking = {1},
                                                  .in_place = true,
                                                  .own_steps = {},
                                                  .unused = RecordSet().ranges(),
                                                  .held = {{}, {}}}},
                   now, out);
    EXPECT_EQ(group.epoch(), epoch);
  };
  group.connected(0, true, now, out);
  propose_and_form(std::uint64_t{1} << 16, false);
  EXPECT_FALSE(group.has_values());
  propose_and_form(std::uint64_t{2} << 16, true);
  EXPECT_TRUE(group.has_values());
  EXPECT_EQ(group.step(), 5);
}

// One worker sends the values, and another says that their epoch has begun. So the values may
// arrive first.
TEST(Joiner, TakesValuesThatComeBeforeTheirEpochHasBegun) {
  const TimePoint now{1h};
  constexpr std::uint64_t kEpoch = std::uint64_t{7} << 32;
  const std::vector<std::int32_t> all = {0, 1, 2};
  CollectiveGroup group({.worker = 0, .workers = 3, .join_timeout = 10s}, now);
  Outbox out;
  for (const int other : {1, 2}) group.connected(other, true, now, out);
  EXPECT_FALSE(group.wants_values_of(kEpoch));
  group.received(1, {MessageType::kPropose, Proposal{kEpoch, all}}, now, out);
  group.rested(now, out);
  EXPECT_TRUE(group.wants_values_of(kEpoch));
  group.take_values(kEpoch, 5, now, out);
  EXPECT_FALSE(group.has_values());
  EXPECT_EQ(group.takes(), 0);
  group.received(1,
                 {MessageType::kForm, Formation{.epoch = kEpoch,
                                                .members = all,
                                                .step = 5,
                                                .source = 2,
                                                .lacking = {0, 1},
                                                .in_place = true,
                                                .own_steps = {},
                                                .unused = RecordSet().ranges(),
                                                .held = {{}, {}, {}}}},
                 now, out);
  EXPECT_TRUE(group.may_begin());
  EXPECT_EQ(group.step(), 5);
  EXPECT_EQ(group.takes(), 1);
}

TEST_F(ChiefOfTwo, AGroupThatLacksValuesOutsideItIsRefused) {
  Formation formation;
  formation.members = {0, 1};
  formation.unused = RecordSet().ranges();
  formation.held = {{}, {}};
  formation.lacking = {7};
  EXPECT_THROW(receive(MessageType::kForm, formation), Error);
  formation.lacking = {1};
  formation.step = -1;
  EXPECT_THROW(receive(MessageType::kForm, formation), Error);
}

}  // namespace
}  // namespace paceline
