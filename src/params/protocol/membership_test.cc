#include "params/protocol/membership.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

using std::chrono::seconds;

TimePoint at(int second) { return TimePoint(seconds(second)); }

Membership two_workers() {
  return Membership({.workers = 2, .join_timeout = seconds(300), .warm_steps = 3}, at(0));
}

std::string join(Membership& members, int worker, std::uint64_t incarnation, int second = 0) {
  bool replaced = false;
  return members.join(worker, incarnation, at(second), replaced);
}

void make_steps(Membership& members, int worker, std::uint64_t incarnation, int from, int to) {
  for (int step = from; step < to; ++step) {
    EXPECT_TRUE(members.begin_step(worker, incarnation, step));
    members.end_step(worker, incarnation, true);
  }
}

TEST(Membership, ATaskOutsideTheSpecIsRefused) {
  Membership members = two_workers();
  EXPECT_NE(join(members, 2, 1).find("worker:2 is not in the cluster spec"), std::string::npos);
  EXPECT_NE(join(members, -1, 1), "");
}

TEST(Membership, ANewerIncarnationReplacesTheOlder) {
  Membership members = two_workers();
  bool replaced = true;
  EXPECT_EQ(members.join(0, 10, at(0), replaced), "");
  EXPECT_FALSE(replaced);
  EXPECT_NE(members.join(0, 9, at(1), replaced), "");
  EXPECT_NE(members.join(0, 10, at(1), replaced), "");
  EXPECT_EQ(members.join(0, 11, at(1), replaced), "");
  EXPECT_TRUE(replaced);
  members.lose(0, 10, at(2));
  EXPECT_EQ(members.connected(), 1) << "the end of the older process is not that of the newer";
  EXPECT_FALSE(members.begin_step(0, 10, 0));
  EXPECT_TRUE(members.begin_step(0, 11, 0));
}

// The worker's first welcome was lost with its connection, and the worker came back only after the
// time for which the ps waits.
TEST(Membership, AWorkerThatWasLostBeforeItsFirstStepMayJoinAgain) {
  Membership members = two_workers();
  EXPECT_EQ(join(members, 0, 10), "");
  members.cut_off(0, 10, at(1));
  EXPECT_NE(join(members, 0, 10, 2), "") << "it comes back";
  members.lose(0, 10, at(3));
  EXPECT_EQ(join(members, 0, 10, 4), "");
  EXPECT_EQ(members.connected(), 1);
  make_steps(members, 0, 10, 0, 1);
  members.lose(0, 10, at(5));
  EXPECT_NE(join(members, 0, 10, 6), "") << "its steps may count already";
  EXPECT_EQ(join(members, 0, 11, 6), "");
}

TEST(Membership, EachStepOfAnIncarnationCountsOnce) {
  Membership members = two_workers();
  join(members, 0, 1);
  EXPECT_TRUE(members.begin_step(0, 1, 0));
  EXPECT_EQ(members.end_step(0, 1, true), (StepDone{.global_step = 1, .staleness = 0}));
  EXPECT_FALSE(members.begin_step(0, 1, 0));
  EXPECT_EQ(members.end_step(0, 1, false), (StepDone{.global_step = 1, .staleness = -1}));
  EXPECT_TRUE(members.begin_step(0, 1, 1));
}

std::int64_t staleness_of_step(Membership& members, std::int64_t step, bool reads_now = false) {
  EXPECT_TRUE(members.begin_step(0, 1, step, reads_now));
  return members.end_step(0, 1, true).staleness;
}

TEST(Membership, AStepIsAsStaleAsOthersMadeStepsSinceItsValuesWereRead) {
  Membership members = two_workers();
  members.set_global_step(100);
  join(members, 0, 1);
  join(members, 1, 1);
  make_steps(members, 1, 1, 0, 4);
  EXPECT_EQ(staleness_of_step(members, 0), 0) << "the first step reads what is there";
  EXPECT_EQ(staleness_of_step(members, 1), 0);
  EXPECT_TRUE(members.begin_step(0, 1, 2));
  make_steps(members, 1, 1, 4, 7);
  EXPECT_EQ(members.end_step(0, 1, true), (StepDone{.global_step = 110, .staleness = 3}));
  make_steps(members, 1, 1, 7, 9);
  EXPECT_EQ(staleness_of_step(members, 3), 2) << "it has the values that the last answers brought";
  make_steps(members, 1, 1, 9, 14);
  EXPECT_EQ(staleness_of_step(members, 4, true), 0) << "it reads values anew";
}

TEST(Membership, WarmWhenEveryWorkerHasMadeItsFirstSteps) {
  Membership members = two_workers();
  join(members, 0, 1);
  make_steps(members, 0, 1, 0, 3);
  EXPECT_FALSE(members.job_state(at(1)).all_warm) << "worker:1 may still come";
  join(members, 1, 1);
  make_steps(members, 1, 1, 0, 2);
  EXPECT_FALSE(members.job_state(at(1)).all_warm);
  make_steps(members, 1, 1, 2, 3);
  EXPECT_TRUE(members.job_state(at(1)).all_warm);
}

TEST(Membership, NobodyWaitsForAWorkerThatDiedOrNeverCame) {
  Membership members = two_workers();
  join(members, 0, 1);
  make_steps(members, 0, 1, 0, 3);
  EXPECT_FALSE(members.job_state(at(299)).all_warm);
  EXPECT_TRUE(members.job_state(at(300)).all_warm);
  join(members, 1, 1);
  EXPECT_FALSE(members.job_state(at(301)).all_warm);
  members.lose(1, 1, at(302));
  EXPECT_TRUE(members.job_state(at(303)).all_warm);
  members.set_done(0, 1);
  EXPECT_TRUE(members.job_state(at(303)).all_done);
}

TEST(Membership, DoneWhenAllAreDoneOrGone) {
  Membership members = two_workers();
  join(members, 0, 1);
  join(members, 1, 1);
  members.set_done(0, 1);
  EXPECT_FALSE(members.job_state(at(1)).all_done);
  EXPECT_TRUE(members.job_state(at(1)).any_done);
  members.say_goodbye(1, 1, at(2));
  EXPECT_TRUE(members.job_state(at(2)).all_done);
}

TEST(Membership, EndsWhenAllHaveSaidGoodbye) {
  Membership members = two_workers();
  join(members, 0, 1);
  members.say_goodbye(0, 1, at(1));
  EXPECT_EQ(members.end(at(2)), Membership::End::kNotYet);
  join(members, 1, 1, 3);
  members.say_goodbye(1, 1, at(4));
  EXPECT_EQ(members.end(at(4)), Membership::End::kFinished);
}

TEST(Membership, EndsWhenTheLastStepIsReachedAndNobodyIsConnected) {
  Membership members = two_workers();
  members.set_last_step(2);
  join(members, 0, 1);
  make_steps(members, 0, 1, 0, 2);
  EXPECT_EQ(members.end(at(1)), Membership::End::kNotYet);
  members.lose(0, 1, at(2));
  EXPECT_EQ(members.end(at(2)), Membership::End::kFinished);
}

TEST(Membership, AtTheLastStepAWorkerOnItsWayIsGivenTimeToLearnThatAllIsOver) {
  Membership members({.workers = 2, .join_timeout = seconds(100), .late_start = seconds(5)}, at(0));
  members.set_last_step(2);
  join(members, 0, 1);
  make_steps(members, 0, 1, 0, 2);
  members.say_goodbye(0, 1, at(10));
  EXPECT_EQ(members.end(at(14)), Membership::End::kNotYet);
  EXPECT_EQ(members.next_change(at(14)), at(15));
  EXPECT_EQ(members.end(at(15)), Membership::End::kFinished);
  join(members, 1, 1, 14);
  EXPECT_EQ(members.end(at(20)), Membership::End::kNotYet);
  members.say_goodbye(1, 1, at(21));
  EXPECT_EQ(members.end(at(21)), Membership::End::kFinished);
}

TEST(Membership, IsAbandonedWhenNobodyIsThereForTheJoinTimeout) {
  Membership members = two_workers();
  EXPECT_EQ(members.next_change(at(0)), at(300));
  EXPECT_EQ(members.end(at(299)), Membership::End::kNotYet);
  EXPECT_EQ(members.end(at(300)), Membership::End::kAbandoned);
  join(members, 0, 1, 310);
  EXPECT_EQ(members.end(at(1000)), Membership::End::kNotYet);
  members.lose(0, 1, at(1000));
  EXPECT_EQ(members.next_change(at(1000)), at(1300));
  EXPECT_EQ(members.end(at(1299)), Membership::End::kNotYet);
  EXPECT_EQ(members.end(at(1300)), Membership::End::kAbandoned);
  EXPECT_EQ(members.text(), "worker:0 died, worker:1 never came");
}

TEST(Membership, ANewerIncarnationGoesOnAtTheTasksNextStep) {
  Membership members = two_workers();
  join(members, 0, 1);
  make_steps(members, 0, 1, 0, 7);
  EXPECT_TRUE(members.begin_step(0, 1, 7)) << "and dies in it";
  join(members, 0, 2);
  EXPECT_EQ(members.applied(0), 7);
  EXPECT_FALSE(members.begin_step(0, 2, 6)) << "the older one has ended it";
  EXPECT_TRUE(members.begin_step(0, 2, 7));
  EXPECT_EQ(members.end_step(0, 2, true).global_step, 8);
  members.set_applied(1, 40);
  join(members, 1, 1);
  EXPECT_EQ(members.applied(1), 40);
  EXPECT_TRUE(members.begin_step(1, 1, 40));
}

// The worker's older process ended step 1 on the ps that counts steps, but died before it ended
// that step on this ps.
TEST(Membership, AStepThatNeverEndedHereIsNoReasonToTakeALaterOneTwice) {
  Membership members = two_workers();
  join(members, 0, 1);
  make_steps(members, 0, 1, 0, 1);
  members.lose(0, 1, at(1));
  EXPECT_EQ(join(members, 0, 2, 2), "");
  make_steps(members, 0, 2, 2, 3);
  members.cut_off(0, 2, at(3));
  EXPECT_EQ(members.come_back(0, 2, at(4)), "");
  EXPECT_EQ(members.applied(0), 3);
  EXPECT_FALSE(members.begin_step(0, 2, 2));
}

// Once a worker is done, a job by time ends without the lost worker, just as a job ends that has
// reached its last step.
TEST(Membership, AJobThatEndsByTimeWaitsForNoLostWorker) {
  Membership members = two_workers();
  join(members, 0, 1);
  join(members, 1, 1);
  make_steps(members, 0, 1, 0, 7);
  members.lose(1, 1, at(5));
  EXPECT_EQ(members.end(at(6)), Membership::End::kNotYet);
  members.set_done(0, 1);
  EXPECT_EQ(members.end(at(7)), Membership::End::kNotYet) << "it may still save";
  members.say_goodbye(0, 1, at(8));
  EXPECT_EQ(members.end(at(8)), Membership::End::kFinished);
}

// Once a worker has ended the training of all, the job ends without the lost worker, although the
// job has not reached its last step.
TEST(Membership, AJobWhoseTrainingAWorkerHasEndedWaitsForNoLostWorker) {
  Membership members = two_workers();
  members.set_last_step(1000);
  join(members, 0, 1);
  join(members, 1, 1);
  members.lose(1, 1, at(5));
  EXPECT_FALSE(members.job_state(at(6)).ended);
  members.end_training();
  EXPECT_TRUE(members.job_state(at(6)).ended);
  members.say_goodbye(0, 1, at(8));
  EXPECT_EQ(members.end(at(8)), Membership::End::kFinished);
}

TEST(Membership, AWorkerThatLeavesBeforeTheTrainingIsOverEndsNoJob) {
  Membership members = two_workers();
  join(members, 0, 1);
  join(members, 1, 1);
  members.lose(1, 1, at(5));
  members.say_goodbye(0, 1, at(8));
  EXPECT_EQ(members.end(at(9)), Membership::End::kNotYet);
  EXPECT_EQ(members.end(at(400)), Membership::End::kAbandoned);
}

TEST(Membership, KnowsWhoIsDisplaced) {
  Membership members = two_workers();
  join(members, 0, 5);
  EXPECT_FALSE(members.is_displaced(0, 5));
  EXPECT_TRUE(members.is_displaced(0, 4));
  EXPECT_FALSE(members.is_displaced(1, 4)) << "it never came";
  EXPECT_FALSE(members.is_displaced(2, 4)) << "there is none";
}

TEST(Membership, ARoundIsOneGlobalStepAndCountsTheStepsOfItsContributors) {
  Membership members = two_workers();
  join(members, 0, 1);
  EXPECT_TRUE(members.begin_step(0, 1, 0));
  members.decide_step(0, 0);
  EXPECT_EQ(members.close_round(), 1);
  EXPECT_EQ(members.applied(0), 1);
  EXPECT_EQ(join(members, 0, 2), "");
  EXPECT_FALSE(members.begin_step(0, 2, 0)) << "it has counted";
  EXPECT_TRUE(members.begin_step(0, 2, 1));
}

TEST(Membership, AStepThatIsDroppedIsMadeAndNoGlobalStep) {
  Membership members = two_workers();
  join(members, 0, 1);
  members.begin_step(0, 1, 0);
  members.decide_step(0, 0);
  EXPECT_EQ(members.applied(0), 1);
  EXPECT_EQ(members.global_step(), 0);
}

TEST(Membership, StepsThatAreDecidedWarmAWorkerWhetherTheyCountOrNot) {
  Membership members = two_workers();
  join(members, 0, 1);
  join(members, 1, 1);
  for (std::int64_t step = 0; step < 3; ++step) {
    EXPECT_FALSE(members.job_state(at(0)).all_warm);
    members.decide_step(0, step);
    members.decide_step(1, step);
  }
  EXPECT_TRUE(members.job_state(at(0)).all_warm);
}

}  // namespace
}  // namespace paceline
