// Tests jobs whose sparse variables lie on a ps, while the workers reduce the dense ones. A worker
// that is lost leaves both the workers of the ps and the group that reduces, and a new worker joins
// both.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/temporary_folder.h"
#include "launch/lab/lab.h"
#include "launch/lab/lab_options.h"
#include "paceline/error.h"
#include "tests/process.h"

namespace paceline::testing {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr seconds kForTheOthers{60};

class Hybrid : public ::testing::Test {
 protected:
  Hybrid() {
    const Finished made = run_paceline({"data", "corpus", "--out", text_, "--words", "60000"});
    EXPECT_EQ(made.status, 0) << made.output;
  }
  Words train(const Words& more) const {
    return join({{"train", "ptb", "--size", "test", "--data", text_, "--threads", "1"}, more});
  }
  std::unique_ptr<Process> start(const std::string& spec, const std::string& task,
                                 const Words& more = {}) const {
    return std::make_unique<Process>(
        paceline_words(train(join({{"--strategy", "hybrid", "--epochs", "100000", "--cluster", spec,
                                    "--task", task, "--link", "tcp"},
                                   more}))));
  }
  std::string out() const { return folder_.path("out"); }

  TemporaryFolder folder_;
  const std::string text_ = folder_.path("text");
};

TEST_F(Hybrid, TheOthersGoOnWithoutAWorkerThatIsLostAndTakeItBack) {
  std::string spec = "ps=" + free_address() + ";worker=" + free_address();
  spec += "," + free_address();
  const auto ps = start(spec, "ps:0");
  std::vector<std::unique_ptr<Process>> workers;
  for (const char* task : {"worker:0", "worker:1"}) workers.push_back(start(spec, task));
  for (const auto& worker : workers) {
    ASSERT_TRUE(worker->wait_for("perplexity", kForTheOthers)) << worker->output();
  }
  for (const int victim : {1, 0}) {
    Process& other = *workers[std::size_t(1 - victim)];
    const std::string name = fmt::format("worker:{}", victim);
    workers[std::size_t(victim)]->signal(SIGKILL);
    ASSERT_TRUE(other.wait_for_next(name + " is lost", kForTheOthers)) << other.output();
    ASSERT_TRUE(other.wait_for_more("perplexity", kForTheOthers)) << other.output();
    workers[std::size_t(victim)] = start(spec, name);
    ASSERT_TRUE(other.wait_for_next(name + " joins at global step", kForTheOthers))
        << other.output();
    ASSERT_TRUE(workers[std::size_t(victim)]->wait_for("perplexity", kForTheOthers))
        << workers[std::size_t(victim)]->output();
  }
  workers[1]->signal(SIGSTOP);
  ASSERT_TRUE(workers[0]->wait_for_next("worker:1 is lost", kForTheOthers)) << workers[0]->output();
  ASSERT_TRUE(workers[0]->wait_for_more("perplexity", kForTheOthers)) << workers[0]->output();
  workers[1]->signal(SIGCONT);
  ASSERT_TRUE(workers[0]->wait_for_next("worker:1 joins at global step", kForTheOthers))
      << workers[0]->output();
  ASSERT_TRUE(workers[1]->wait_for_more("perplexity", kForTheOthers)) << workers[1]->output();
  for (const auto& worker : workers) worker->signal(SIGINT);
  for (const auto& worker : workers)
    EXPECT_EQ(worker->wait_exit(kForTheOthers), 130) << worker->output();
  EXPECT_EQ(ps->wait_exit(kForTheOthers), 0) << ps->output();
}

TEST_F(Hybrid, ALostPsTakesAllBackToACheckpointOfBothParts) {
  Process job(paceline_words(
      train({"--strategy", "hybrid", "--ps", "1", "--workers", "2", "--steps", "1500", "--out",
             out(), "--save-every", "100", "--on-failure", "restart"})));
  ASSERT_TRUE(job.wait_for("Saving model to", kForTheOthers)) << job.output();
  Process killer({"pkill", "-KILL", "-P", std::to_string(job.pid()), "-f", "task ps:0"});
  ASSERT_EQ(killer.wait_exit(seconds(10)), 0);
  EXPECT_EQ(job.wait_exit(seconds(120)), 0) << job.output();
  EXPECT_THAT(job.output(), HasSubstr("goes on from global step")) << job.output();
  EXPECT_THAT(job.output(), HasSubstr("1,500 global steps")) << job.output();
}

// Once all workers are lost, no task has the dense variables that belong to the ps's values.
TEST_F(Hybrid, TheLossOfAllWorkersTakesThePsBackToACheckpointToo) {
  std::string spec = "ps=" + free_address() + ";worker=" + free_address();
  spec += "," + free_address();
  const Words saving = {"--out", out(), "--save-every", "100"};
  const auto ps = start(spec, "ps:0", saving);
  std::vector<std::unique_ptr<Process>> workers;
  for (const char* task : {"worker:0", "worker:1"}) workers.push_back(start(spec, task, saving));
  ASSERT_TRUE(workers[0]->wait_for("Saving model to", kForTheOthers)) << workers[0]->output();
  for (const auto& worker : workers) worker->signal(SIGKILL);
  for (const auto& worker : workers) EXPECT_EQ(worker->wait_exit(kForTheOthers), 128 + SIGKILL);
  for (const int w : {0, 1}) {
    workers[std::size_t(w)] =
        start(spec, fmt::format("worker:{}", w), join({saving, {"--resume"}}));
  }
  ASSERT_TRUE(workers[0]->wait_for("all lost", kForTheOthers)) << workers[0]->output();
  for (const auto& worker : workers) {
    ASSERT_TRUE(worker->wait_for_more("perplexity", kForTheOthers))
        << worker->output() << ps->output();
  }
  for (const auto& worker : workers) worker->signal(SIGINT);
  for (const auto& worker : workers)
    EXPECT_EQ(worker->wait_exit(kForTheOthers), 130) << worker->output();
}

TEST_F(Hybrid, GoesOnFromCheckpointsOfOtherStrategiesAndTheyFromIts) {
  const std::vector<Words> ways = {
      {"--sparse", "ps", "--dense", "allreduce", "--ps", "2", "--workers", "2"},
      {"--ps", "0", "--workers", "2"},
      {"--strategy", "hybrid", "--ps", "1", "--workers", "3"},
      {"--strategy", "sync", "--ps", "1", "--workers", "2"}};
  int steps = 0;
  for (const Words& way : ways) {
    steps += 10;
    const Finished run = run_paceline(
        train(join({way, {"--steps", std::to_string(steps), "--out", out(), "--resume"}})));
    EXPECT_EQ(run.status, 0) << run.output;
    EXPECT_THAT(run.output, HasSubstr(fmt::format("{} global steps", steps))) << run.output;
    const std::string part = steps > 10 ? "10 of them in this run" : "";
    EXPECT_THAT(run.output, HasSubstr(part)) << run.output;
  }
}

TEST_F(Hybrid, AModelWithoutASparseVariableIsRefusedBeforeAnythingStarts) {
  const Finished run = run_paceline(
      {"train", "mlp", "--strategy", "hybrid", "--ps", "1", "--workers", "2", "--dry-run"});
  EXPECT_NE(run.status, 0);
  EXPECT_THAT(run.output, HasSubstr("--strategy hybrid needs a sparse variable"));
}

/// The ps and two workers on emulated hosts: the ps is on host 0, and worker i on host i + 1.
class HybridOnHosts : public Hybrid {
 protected:
  void start_all(const Words& more) {
    try {
      lab_.emplace(3, LabLinks{.gbps = 1});
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
    const std::string spec = fmt::format("ps={}:2222;worker={}:2223,{}:2224", lab_address(0),
                                         lab_address(1), lab_address(2));
    const char* const tasks[] = {"ps:0", "worker:0", "worker:1"};
    for (int host = 0; host < 3; ++host) {
      const Words words = train(join(
          {{"--strategy", "hybrid", "--epochs", "100000", "--cluster", spec, "--task", tasks[host]},
           with_key(folder_),
           more}));
      tasks_.push_back(std::make_unique<Process>(lab_->on_host(host, paceline_words(words))));
    }
    for (const int w : {0, 1}) {
      ASSERT_TRUE(worker(w).wait_for("perplexity", kForTheOthers)) << worker(w).output();
    }
  }
  Process& worker(int w) const { return *tasks_[std::size_t(w) + 1]; }
  /// Returns the worker that the others have left behind; −1 if there is none.
  int left_behind() const {
    for (int tries = 0; tries < 60; ++tries) {
      for (const int w : {0, 1}) {
        const std::string words = fmt::format("others went on without worker:{}", w);
        if (worker(w).wait_for(words, seconds(1))) return w;
      }
    }
    return -1;
  }

  std::optional<Lab> lab_;
  std::vector<std::unique_ptr<Process>> tasks_;
};

TEST_F(HybridOnHosts, TheOthersGoOnWithoutAWorkerThatIsCutOffFromThePs) {
  start_all({"--reconnect-timeout", "120"});
  if (IsSkipped() || HasFatalFailure()) return;
  for (const int victim : {1, 0}) {
    Process& other = worker(1 - victim);
    const std::string name = fmt::format("worker:{}", victim);
    lab_->part(0, victim + 1);
    ASSERT_TRUE(other.wait_for_next(name + " is cut off from a ps", kForTheOthers))
        << other.output();
    ASSERT_TRUE(other.wait_for_more("perplexity", kForTheOthers)) << other.output();
    lab_->reunite(0, victim + 1);
    ASSERT_TRUE(other.wait_for_next(name + " joins at global step", kForTheOthers))
        << other.output();
    ASSERT_TRUE(worker(victim).wait_for_more("perplexity", kForTheOthers))
        << worker(victim).output();
  }
}

TEST_F(HybridOnHosts, OneOfTwoWorkersThatDoNotReachEachOtherGoesOnAndTakesTheOtherBack) {
  start_all({});
  if (IsSkipped() || HasFatalFailure()) return;
  lab_->part(1, 2);
  const int behind = left_behind();
  ASSERT_GE(behind, 0) << worker(0).output() << worker(1).output();
  ASSERT_TRUE(worker(1 - behind).wait_for_more("perplexity", kForTheOthers))
      << worker(1 - behind).output();
  lab_->reunite(1, 2);
  for (const int w : {behind, 1 - behind}) {
    ASSERT_TRUE(worker(w).wait_for_more("perplexity", kForTheOthers)) << worker(w).output();
  }
}

TEST_F(HybridOnHosts, AWorkerThatNeverReachesTheOtherAgainEndsAtTheJoinTimeout) {
  start_all({"--join-timeout", "4"});
  if (IsSkipped() || HasFatalFailure()) return;
  lab_->part(1, 2);
  const int behind = left_behind();
  ASSERT_GE(behind, 0) << worker(0).output() << worker(1).output();
  EXPECT_EQ(worker(behind).wait_exit(kForTheOthers), 1) << worker(behind).output();
  const std::string& output = worker(behind).output();
  const std::string last = output.substr(output.rfind("error"));
  EXPECT_THAT(last, HasSubstr("worker:0"));
  EXPECT_THAT(last, HasSubstr("worker:1"));
  EXPECT_TRUE(worker(1 - behind).wait_for_more("perplexity", kForTheOthers))
      << worker(1 - behind).output();
}

}  // namespace
}  // namespace paceline::testing
