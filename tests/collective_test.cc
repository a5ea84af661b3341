// Tests workers that train by all-reduce, each in its own process: a worker that is killed,
// stopped, late or done is named, and the others go on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/temporary_folder.h"
#include "checkpoint/checkpoints.h"
#include "run/report/report.h"
#include "tests/process.h"

namespace paceline::testing {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

const Words kSmall = {"train", "mlp", "--batch", "8", "--threads", "1"};
const Words kHidden = {"--hidden", "32"};
// A loss is noticed within 5 s; the rest is for starting and ending on a busy machine.
constexpr seconds kSoon{60};

class AllReduce : public ::testing::TestWithParam<const char*> {
 protected:
  void make_spec(int workers) {
    for (int w = 0; w < workers; ++w) {
      spec_ += (w == 0 ? "worker=" : ",") + free_address();
    }
  }
  std::unique_ptr<Process> start(int worker, const Words& more = {},
                                 const Words& hidden = kHidden) const {
    return std::make_unique<Process>(join(
        {paceline_words(kSmall),
         hidden,
         {"--link", GetParam(), "--cluster", spec_, "--task", fmt::format("worker:{}", worker)},
         more}));
  }
  std::string spec_;
};

INSTANTIATE_TEST_SUITE_P(Links, AllReduce, ::testing::Values("shm", "tcp"),
                         [](const auto& one) { return std::string(one.param); });

TEST_P(AllReduce, TheLauncherTrainsWithoutAPs) {
  const Finished run = run_paceline(join(
      {kSmall, kHidden, {"--ps", "0", "--workers", "3", "--steps", "40", "--link", GetParam()}}));
  EXPECT_EQ(run.status, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("40 global steps (40 + 40 + 40)"));
}

// When the time is up, workers end at different moments, and one of them saves.
TEST_P(AllReduce, WhenTimeIsUpTheNewestCheckpointIsOfTheLastStep) {
  for (const Words& how : {Words{}, Words{"--strategy", "local_sgd", "--local-steps", "12"}}) {
    const TemporaryFolder folder;
    const Finished run = run_paceline(join({kSmall,
                                            kHidden,
                                            {"--ps", "0", "--workers", "3", "--seconds", "1",
                                             "--link", GetParam(), "--out", folder.path("run")},
                                            how}));
    ASSERT_EQ(run.status, 0) << run.output;
    const Checkpoints checkpoints(folder.path("run/checkpoints"));
    const auto newest = checkpoints.newest_whole(WholeCheck::kChecksums).whole;
    ASSERT_TRUE(newest) << run.output;
    EXPECT_EQ(newest->step, read_report(folder.path("run/report.json")).global_step) << run.output;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path("run/checkpoints"))) {
      EXPECT_NE(entry.path().extension(), ".part");
    }
  }
}

// A worker's report includes its link to a worker that ended earlier.
TEST_P(AllReduce, AReportHasTheLinksToAllOtherWorkers) {
  const TemporaryFolder folder;
  const std::string file = folder.path("report.json");
  const Finished run = run_paceline(join(
      {kSmall,
       kHidden,
       {"--ps", "0", "--workers", "3", "--steps", "20", "--link", GetParam(), "--report", file}}));
  ASSERT_EQ(run.status, 0) << run.output;
  const Report report = read_report(file);
  ASSERT_EQ(report.tasks.size(), 3U);
  for (const TaskReport& task : report.tasks) {
    std::vector<std::string> tasks = {task.task};
    for (const LinkReport& link : task.links) {
      tasks.push_back(link.to);
      EXPECT_GT(link.step_sent.value_or(0), 0) << task.task << " to " << link.to;
    }
    EXPECT_THAT(tasks, UnorderedElementsAre("worker:0", "worker:1", "worker:2"));
  }
}

TEST_P(AllReduce, TheOthersGoOnWithoutAWorkerThatIsKilledAndTakeItBack) {
  make_spec(3);
  std::vector<std::unique_ptr<Process>> tasks;
  tasks.reserve(3);
  for (int w = 0; w < 3; ++w) tasks.push_back(start(w));
  for (const auto& task : tasks) ASSERT_TRUE(task->wait_for("Step: ", kSoon)) << task->output();
  for (const int victim : {2, 0}) {
    const int teller = victim == 0 ? 1 : 0;
    tasks[std::size_t(victim)]->signal(SIGKILL);
    ASSERT_TRUE(
        tasks[std::size_t(teller)]->wait_for(fmt::format("worker:{} is lost", victim), kSoon))
        << tasks[std::size_t(teller)]->output();
    ASSERT_TRUE(tasks[1]->wait_for_more("Step: ", kSoon)) << tasks[1]->output();
    tasks[std::size_t(victim)] = start(victim);
    ASSERT_TRUE(tasks[std::size_t(teller)]->wait_for(
        fmt::format("worker:{} joins at global step", victim), kSoon))
        << tasks[std::size_t(teller)]->output();
    ASSERT_TRUE(tasks[std::size_t(victim)]->wait_for("Step: ", kSoon))
        << tasks[std::size_t(victim)]->output();
  }
  for (const auto& task : tasks) task->signal(SIGINT);
  for (const auto& task : tasks) EXPECT_EQ(task->wait_exit(kSoon), 130) << task->output();
}

// With batch norm of the whole batch, workers wait for each other's sums in the middle of a step.
// If a worker is lost there, the others make that step once more.
TEST_P(AllReduce, WithBatchNormOfTheWholeBatchTheyGoOnWithoutAWorkerThatIsKilledToo) {
  const char* const kLoss = ", loss = ";
  make_spec(3);
  const auto start_resnet = [&](int worker) {
    return std::make_unique<Process>(paceline_words(
        {"train", "resnet", "--depth", "8", "--batch", "2", "--threads", "1", "--sync-batch-norm",
         "--link", GetParam(), "--cluster", spec_, "--task", fmt::format("worker:{}", worker)}));
  };
  std::vector<std::unique_ptr<Process>> tasks;
  for (int w = 0; w < 3; ++w) tasks.push_back(start_resnet(w));
  for (const auto& task : tasks) ASSERT_TRUE(task->wait_for(kLoss, kSoon)) << task->output();
  tasks[2]->signal(SIGKILL);
  ASSERT_TRUE(tasks[0]->wait_for("worker:2 is lost", kSoon)) << tasks[0]->output();
  ASSERT_TRUE(tasks[1]->wait_for_more(kLoss, kSoon)) << tasks[1]->output();
  tasks[2] = start_resnet(2);
  ASSERT_TRUE(tasks[0]->wait_for("worker:2 joins at global step", kSoon)) << tasks[0]->output();
  for (const auto& task : tasks) {
    ASSERT_TRUE(task->wait_for_more(kLoss, kSoon)) << task->output();
  }
  for (const auto& task : tasks) task->signal(SIGINT);
  for (const auto& task : tasks) EXPECT_EQ(task->wait_exit(kSoon), 130) << task->output();
}

TEST_P(AllReduce, AWorkerThatStoodStillJoinsAgain) {
  make_spec(2);
  const auto chief = start(0), other = start(1);
  for (auto* task : {chief.get(), other.get()}) {
    ASSERT_TRUE(task->wait_for("Step: ", kSoon)) << task->output();
  }
  chief->signal(SIGSTOP);
  ASSERT_TRUE(other->wait_for("worker:0 is lost", kSoon)) << other->output();
  ASSERT_TRUE(other->wait_for_more("Step: ", kSoon)) << other->output();
  chief->signal(SIGCONT);
  ASSERT_TRUE(other->wait_for("worker:0 joins at global step", kSoon)) << other->output();
  ASSERT_TRUE(chief->wait_for_more("Step: ", kSoon)) << chief->output();
  EXPECT_THAT(chief->output(), HasSubstr("the others went on without worker:0"));
  for (const auto* task : {chief.get(), other.get()}) task->signal(SIGINT);
  for (auto* task : {chief.get(), other.get()}) EXPECT_EQ(task->wait_exit(kSoon), 130);
}

TEST_P(AllReduce, ALateWorkerJoinsAndOneThatIsDoneIsNotWaitedFor) {
  make_spec(3);
  const auto chief = start(0, {"--join-timeout", "3"}), other = start(1, {"--join-timeout", "3"});
  ASSERT_TRUE(chief->wait_for("worker:2 has not come within 3 s", kSoon)) << chief->output();
  ASSERT_TRUE(other->wait_for("Step: ", kSoon)) << other->output();
  const auto late = start(2, {"--seconds", "1"});
  ASSERT_TRUE(chief->wait_for("worker:2 joins at global step", kSoon)) << chief->output();
  other->signal(SIGINT);
  EXPECT_EQ(other->wait_exit(kSoon), 130) << other->output();
  ASSERT_TRUE(chief->wait_for("worker:1 has ended its training", kSoon)) << chief->output();
  ASSERT_TRUE(chief->wait_for_more("Step: ", kSoon)) << chief->output();
  for (const auto* task : {chief.get(), late.get()}) task->signal(SIGINT);
  EXPECT_EQ(chief->wait_exit(kSoon), 130) << chief->output();
}

TEST_P(AllReduce, TheLowestWorkerSavesWhenTheChiefIsLostAndTrainingResumes) {
  make_spec(2);
  const TemporaryFolder folder;
  const Words saves = {"--out", folder.path(), "--save-every", "100", "--keep", "3"};
  auto chief = start(0, saves);
  const auto other = start(1, saves);
  ASSERT_TRUE(chief->wait_for("Saving model to", kSoon)) << chief->output();
  chief->signal(SIGKILL);
  ASSERT_TRUE(other->wait_for("Saving model to", kSoon)) << other->output();
  other->signal(SIGINT);
  EXPECT_EQ(other->wait_exit(kSoon), 130) << other->output();
  const auto newest = Checkpoints(folder.path("checkpoints")).newest_whole(WholeCheck::kChecksums);
  ASSERT_TRUE(newest.whole);
  const std::string steps = std::to_string(newest.whole->step + 20);
  const Finished again =
      run_paceline(join({kSmall,
                         kHidden,
                         {"--ps", "0", "--workers", "2", "--link", GetParam(), "--out",
                          folder.path(), "--resume", "--steps", steps}}));
  EXPECT_EQ(again.status, 0) << again.output;
  EXPECT_THAT(again.output, HasSubstr(fmt::format("Goes on from step {}", newest.whole->step)));
}

TEST_P(AllReduce, AWorkerOfAnotherModelIsRefusedByName) {
  make_spec(2);
  const auto chief = start(0);
  const auto other = start(1, {}, {"--hidden", "16"});
  EXPECT_EQ(other->wait_exit(kSoon), 1) << other->output();
  EXPECT_THAT(other->output(), HasSubstr("refuses worker:1: its variables differ"));
  chief->signal(SIGINT);
  EXPECT_EQ(chief->wait_exit(kSoon), 130) << chief->output();
}

TEST_P(AllReduce, AWorkerWithOtherFlagsIsToldWhich) {
  make_spec(2);
  const auto chief = start(0);
  const auto other = start(1, {"--accumulate", "4"});
  EXPECT_EQ(other->wait_exit(kSoon), 1) << other->output();
  EXPECT_THAT(other->output(), HasSubstr("refuses worker:1: worker:0's --accumulate is 1, that of "
                                         "worker:1 is 4"));
  chief->signal(SIGINT);
  EXPECT_EQ(chief->wait_exit(kSoon), 130) << chief->output();
}

TEST_P(AllReduce, AWorkerWhoseChiefNeverComesSaysSo) {
  make_spec(2);
  const auto other = start(1, {"--join-timeout", "2"});
  EXPECT_EQ(other->wait_exit(kSoon), 1) << other->output();
  EXPECT_THAT(other->output(), HasSubstr("worker:0, which begins, has not come"));
}

}  // namespace
}  // namespace paceline::testing
