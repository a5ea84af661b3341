#include "launch/launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/temporary_folder.h"
#include "checkpoint/checkpoint_save.h"
#include "net/tls/link_security.h"
#include "paceline/error.h"
#include "run/program_run.h"
#include "run/report/run_folder.h"

namespace paceline {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// The tasks are shells, in which $task is the task's name and $report the file for its report.
constexpr const char* kReadArguments = R"(
while [ $# -gt 0 ]; do
  case $1 in --task) task=$2; shift;; --report) report=$2; shift;; --threads) threads=$2; shift;;
    --key-file) key=$2; shift;;
    --device) device=$2; shift;; esac
  shift
done
write_report() {
  printf '{"model":"m","strategy":"async",'"$more"'"tasks":[{"task":"%s","steps":'${steps:-1500}',"seconds":1,"steps_per_s":2,
"examples_per_s":4,"unit":"x","step_ms":{"p50":1,"p99":2},"share":{},"hidden_ms":0}],
"loss":{"first":3,"last":2},"error":"%s"}' "$task" "$1" > "$report"
}
)";

struct Outcome {
  int status = 0;
  std::string out, err;
  double seconds = 0;
};

class Launcher : public testing::Test {
 protected:
  Launcher() {
    cluster_.process = Cluster::Process::kLauncher;
    cluster_.strategy.name = "async";
    cluster_.cluster_id = "test";
    cluster_.launch.ps = 1;
    cluster_.launch.workers = 2;
    report_ = testing::TempDir() + "launcher_test_" + std::to_string(getpid()) + ".json";
    run_.report = report_;
    options_.stop_within = std::chrono::seconds(2);
    options_.outlives_the_other_job = std::chrono::milliseconds(300);
  }
  ~Launcher() override { std::filesystem::remove(report_); }

  LaunchProgram shell(const std::string& script) const {
    return {"/bin/sh", {"-c", kReadArguments + script, "task"}};
  }

  // Launches from a process of its own, to which the test can send signals; its output goes to
  // files.
  pid_t launch_apart(const std::string& script) { return launch_apart(shell(script)); }
  pid_t launch_apart(const LaunchProgram& program) {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    const std::string out = report_ + ".out", err = report_ + ".err";
    if (freopen(out.c_str(), "w", stdout) == nullptr ||
        freopen(err.c_str(), "w", stderr) == nullptr)
      _exit(99);
    const int status = launch(cluster_, run_, program, options_);
    std::fflush(nullptr);
    _exit(status);
  }

  Outcome wait_for(pid_t pid) {
    const auto begin = std::chrono::steady_clock::now();
    int status = 0;
    waitpid(pid, &status, 0);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    Outcome outcome{WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status),
                    take(report_ + ".out"), take(report_ + ".err"), took.count()};
    return outcome;
  }

  Outcome launch_shells(const std::string& script) { return wait_for(launch_apart(script)); }
  /// The tasks are shells that learn from a variable which task they are.
  pid_t launch_commands_apart(const std::string& script) {
    return launch_apart({.path = "sh", .arguments = {"-c", script}, .by_variable = true});
  }

  static std::string take(const std::string& path) {
    std::ifstream file(path);
    std::string text(std::istreambuf_iterator<char>(file), {});
    std::filesystem::remove(path);
    return text;
  }

  Cluster cluster_;
  RunOptions run_;
  TaskGroupOptions options_;
  std::string report_;
};

TEST_F(Launcher, PrefixesLinesAndMergesReports) {
  const Outcome outcome =
      launch_shells("echo hello $threads $device; echo oops >&2; write_report ''");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.out, HasSubstr("ps:0     | hello\n"));
  EXPECT_THAT(outcome.out, testing::EndsWith("\n3,000 global steps (1,500 + 1,500)\n"));
  EXPECT_THAT(outcome.out, HasSubstr("worker:1 | hello"));
  EXPECT_THAT(outcome.err, HasSubstr("worker:0 | oops\n"));
  const Report report = read_report(report_);
  ASSERT_EQ(report.tasks.size(), 3U);
  EXPECT_EQ(report.tasks[0].task, "worker:0");
  EXPECT_EQ(report.tasks[2].task, "ps:0");
  EXPECT_EQ(report.error, "");
}

// With --accumulate 3, the 1,500 steps of a worker are 500 contributions.
TEST_F(Launcher, CountsContributionsAsGlobalSteps) {
  const Outcome outcome = launch_shells(
      R"(more='"accumulate":3,'; if [ $task = ps:0 ]; then steps=1000; fi; write_report '')");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, testing::EndsWith("\n1,000 global steps (500 + 500)\n"));
}

// In rounds, the local steps of one worker are the global steps; without rounds, those of all
// workers together are.
TEST_F(Launcher, CountsLocalStepsByWhetherTheyHaveRounds) {
  const char* const local = R"(more='"strategy":"local_sgd",'; write_report '')";
  EXPECT_THAT(launch_shells(local).out,
              testing::EndsWith("\n1,500 global steps (1,500 + 1,500)\n"));
  own_program_run(run_).flags = {{"--outer", "async"}};
  EXPECT_THAT(launch_shells(local).out,
              testing::EndsWith("\n3,000 global steps (1,500 + 1,500)\n"));
}

TEST_F(Launcher, StopsTheOthersAndNamesTheFirstCause) {
  const Outcome outcome =
      launch_shells("if [ $task = worker:1 ]; then write_report 'no data'; exit 1; fi; sleep 60");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_LT(outcome.seconds, 30);
  EXPECT_THAT(outcome.err, HasSubstr("paceline: error: worker:1 failed first: no data\n"));
  EXPECT_EQ(read_report(report_).error, "worker:1 failed first: no data");
}

// A task that failed before its first step would fail again, so resuming is not advised.
TEST_F(Launcher, ResumingIsAdvisedOnlyWhereStepsWereMade) {
  const TemporaryFolder out;
  cluster_.launch.workers = 1;
  run_.out = out.path();
  own_program_run(run_).resume_command = "train --resume";
  const Checkpoints checkpoints(checkpoints_folder(run_));
  CheckpointSave save(checkpoints, 0);
  CheckpointIndex index;
  index.global_step = 0;
  save.finish(index);
  const std::string fails = "write_report 'no such data'; if [ $task = worker:0 ]; then exit 1; fi";
  EXPECT_THAT(launch_shells("steps=0; " + fails).err,
              testing::EndsWith("worker:0 failed first: no such data\n"));
  EXPECT_THAT(launch_shells(fails).err,
              testing::EndsWith("no such data; to go on from step 0: train --resume\n"));
}

TEST_F(Launcher, ATaskThatIsKilledIsNamedWithItsSignal) {
  const Outcome outcome = launch_shells(
      "if [ $task = ps:0 ]; then kill -9 $$; fi; trap '' TERM; sleep 60 & wait; sleep 60");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_LT(outcome.seconds, 30) << "tasks that ignore SIGTERM are killed";
  EXPECT_THAT(outcome.err, HasSubstr("ps:0 failed first: killed by signal 9"));
}

TEST_F(Launcher, TellsTheEvaluatorThatTheJobHasEndedAndWaitsForIt) {
  cluster_.launch.evaluator = true;
  const Outcome outcome = launch_shells(R"(
if [ $task = evaluator:0 ]; then cat; sleep 1; echo evaluated; exit 0; fi
write_report '')");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("evaluator:0 | evaluated\n")) << "it may take its time";
  EXPECT_EQ(read_report(report_).tasks.size(), 3U);
}

TEST_F(Launcher, AnEvaluatorThatFailsEndsNothing) {
  cluster_.launch.evaluator = true;
  options_.say = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  const Outcome outcome = launch_shells(
      "if [ $task = evaluator:0 ]; then exit 3; fi; sleep 0.5; echo done; write_report ''");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.out, HasSubstr("worker:0    | done"));
  EXPECT_THAT(outcome.err, HasSubstr("evaluator:0 has failed: the job goes on without it\n"));
  EXPECT_THAT(outcome.err, HasSubstr("evaluator:0 failed first: exit status 3"));
}

TEST_F(Launcher, AnEvaluatorThatFailsHidesNoFailureOfTheJob) {
  cluster_.launch.evaluator = true;
  const std::string failed = report_ + ".failed";
  const Outcome outcome = launch_shells("MARK=" + failed + R"(
case $task in
  evaluator:0) : > $MARK; exit 2;;
  worker:1) until [ -e $MARK ]; do sleep 0.05; done; exit 1;;
  *) exec sleep 60;;
esac)");
  std::filesystem::remove(failed);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("worker:1 failed first: exit status 1"));
}

TEST_F(Launcher, AnEvaluatorThatWasStartedWronglyIsNoWrongUseOfTheJob) {
  cluster_.launch.evaluator = true;
  const Outcome outcome =
      launch_shells("if [ $task = evaluator:0 ]; then exit 2; fi; write_report ''");
  EXPECT_EQ(outcome.status, 1);
}

TEST_F(Launcher, ContinueLetsTheOthersGoOn) {
  cluster_.launch.on_failure = options_.on_failure = OnFailure::kContinue;
  const Outcome outcome = launch_shells(
      "if [ $task = worker:1 ]; then exit 3; fi; if [ $task = worker:0 ]; then sleep 0.5; echo "
      "done; fi;"
      "if [ $task = ps:0 ]; then exec sleep 60; fi");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_LT(outcome.seconds, 30) << "a ps that waits for a dead worker is ended";
  EXPECT_THAT(outcome.out, HasSubstr("worker:0 | done"));
  EXPECT_THAT(outcome.err, HasSubstr("worker:1 failed first: exit status 3"));
}

TEST_F(Launcher, NothingGoesOnWithoutAPs) {
  options_.on_failure = OnFailure::kContinue;
  options_.say = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  const Outcome outcome = launch_shells(
      "if [ $task = ps:0 ]; then kill -KILL $$; fi; trap 'exit 1' TERM; while :; do "
      "sleep 0.05; done");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err,
              HasSubstr("ps:0 has ended (killed by signal 9 (Killed)), and no worker can go on "
                        "without its variables: the job is ended (--on-failure restart would"));
  EXPECT_THAT(outcome.err, HasSubstr("ps:0 failed first: killed by signal 9"));
}

TEST_F(Launcher, RestartStartsATaskAgainThatFails) {
  options_.on_failure = OnFailure::kRestart;
  options_.say = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  const std::string mark = report_ + ".mark";
  const Outcome outcome = launch_shells("MARK=" + mark + R"(
case $task in
  worker:1) if [ ! -e $MARK ]; then touch $MARK; kill -KILL $$; fi; echo again;;
esac
write_report '')");
  std::filesystem::remove(mark);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("worker:1 | again\n"));
  EXPECT_THAT(outcome.err,
              HasSubstr("worker:1 has ended (killed by signal 9 (Killed)): it is started again\n"));
}

// The key takes one more pipe in each task, also in a task that is started again.
TEST_F(Launcher, GivesEachProcessTheKeyThroughAPipeOfItsOwn) {
  options_.on_failure = OnFailure::kRestart;
  const TemporaryFolder folder;
  const std::string script = "cd " + folder.path() + R"(
ls -l /proc/$$/fd > $task.open; grep -c pipe: $task.open >> $task
if [ -n "$key" ]; then cat $key >> $task; fi
case $task in worker:1) if [ ! -e mark ]; then touch mark; kill -KILL $$; fi;; esac
write_report '')";
  EXPECT_EQ(launch_shells(script).status, 0);
  const int pipes = std::stoi(take(folder.path("ps:0")));
  for (const char* const file : {"worker:0", "worker:1", "mark"}) take(folder.path(file));
  LinkSecurity security;
  security.key = SecretKey::make();
  cluster_.links.security.loaded = std::make_shared<LinkSecurity>(security);
  const Outcome outcome = launch_shells(script);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const std::string once = std::to_string(pipes + 1) + "\n" + security.key->text();
  EXPECT_EQ(take(folder.path("ps:0")), once);
  EXPECT_EQ(take(folder.path("worker:0")), once);
  EXPECT_EQ(take(folder.path("worker:1")), once + once);
}

TEST_F(Launcher, ATaskThatFailsAgainAndAgainIsGivenUp) {
  options_.on_failure = OnFailure::kRestart;
  const Outcome outcome = launch_shells(R"(
case $task in worker:1) echo fails; exit 1;; *) sleep 20;; esac)");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("worker:1 failed first: exit status 1"));
  const std::string line = "worker:1 | fails\n";
  EXPECT_THAT(outcome.out, HasSubstr(line + line + line + line));
}

TEST_F(Launcher, PassesOnASignalAndEndsWith130) {
  run_.quiet = true;
  const std::string ready = report_ + ".ready";
  ASSERT_EQ(mkfifo(ready.c_str(), 0600), 0);
  const pid_t pid = launch_apart("trap 'echo asked; exit 130' INT; echo x > " + ready +
                                 "; while :; do sleep 0.05; done");
  // The test also opens the fifo for writing, so that a line stays in it until the next task opens
  // it.
  std::fstream fifo(ready, std::ios::in | std::ios::out);
  std::string line;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(std::getline(fifo, line));
  kill(pid, SIGINT);
  const Outcome outcome = wait_for(pid);
  std::filesystem::remove(ready);
  EXPECT_EQ(outcome.status, 130);
  for (const char* task : {"ps:0     | asked", "worker:0 | asked", "worker:1 | asked"}) {
    EXPECT_THAT(outcome.out, HasSubstr(task));
  }
  EXPECT_THAT(outcome.err, HasSubstr("interrupted"));
}

TEST_F(Launcher, AsksAPsToEndAfterTheWorkers) {
  const std::string ps_up = report_ + ".ps_up", worker_up = report_ + ".worker_up";
  const std::string stays = "; while :; do sleep 0.05; done";
  const Outcome outcome =
      launch_shells("case $task in ps:0) trap 'echo ps over; exit 0' TERM; : > " + ps_up + stays +
                    ";; worker:0) trap 'sleep 0.3; echo over; exit 0' TERM; : > " + worker_up +
                    stays + ";; *) until [ -e " + ps_up + " ] && [ -e " + worker_up +
                    " ]; do sleep 0.05; done; exit 1;; esac");
  std::filesystem::remove(ps_up);
  std::filesystem::remove(worker_up);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.out, HasSubstr("worker:0 | over"));
  EXPECT_THAT(outcome.out, HasSubstr("ps:0     | ps over"));
  EXPECT_LT(outcome.out.find("worker:0 | over"), outcome.out.find("ps:0     | ps over"));
}

TEST_F(Launcher, AWorkerThatCameTooLateIsNoFailure) {
  const Outcome outcome =
      launch_shells("write_report ''; if [ $task = worker:1 ]; then exec sleep 60; fi; exit 0");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_LT(outcome.seconds, 30);
}

// worker:0 stops itself, before or after the other tasks have ended.
constexpr const char* kStopsTheChief = R"(
case $task in
  worker:0) kill -STOP $$;;
  ps:0) exit 0;;
esac
more='"global_step":500,'; write_report '')";

class StoppedTask : public Launcher {
 protected:
  StoppedTask() {
    options_.stopped_within = std::chrono::milliseconds(300);
    options_.say = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  }
};

TEST_F(StoppedTask, IsEndedAndNamedAfterTheOthers) {
  for (const int ps : {0, 1}) {
    cluster_.launch.ps = ps;
    const Outcome outcome = launch_shells(kStopsTheChief);
    EXPECT_EQ(outcome.status, 0) << outcome.err << "nothing is lost that was to be kept";
    EXPECT_THAT(outcome.err, HasSubstr("worker:0 was stopped (SIGSTOP)"));
    EXPECT_THAT(outcome.err, Not(HasSubstr("failed first")));
  }
}

TEST_F(StoppedTask, IsAFailureIfStepsAreLostWithIt) {
  const TemporaryFolder out;
  run_.out = out.path();
  const Outcome outcome = launch_shells(kStopsTheChief);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("paceline: error: worker:0 was stopped (SIGSTOP) and was "
                                     "ended, and with it steps are lost; no checkpoint"));
  EXPECT_THAT(read_report(report_).error, HasSubstr("worker:0 was stopped"));
}

TEST_F(StoppedTask, ThatGoesOnIsWaitedFor) {
  options_.stopped_within = options_.outlives_the_other_job = std::chrono::minutes(10);
  const Outcome outcome = launch_shells(R"(
if [ $task = worker:0 ]; then (sleep 0.5; kill -CONT $$) & kill -STOP $$; echo goes on; fi
write_report '')");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("worker:0 | goes on\n"));
  EXPECT_EQ(outcome.err, "");
}

TEST_F(StoppedTask, IsKilledAfterTheOthersFailed) {
  options_.stop_within = std::chrono::minutes(10);
  const Outcome outcome = launch_shells(R"(
case $task in worker:0) kill -STOP $$;; worker:1) exit 1;; esac
exec sleep 60)");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, HasSubstr("worker:1 failed first: exit status 1"));
}

TEST_F(Launcher, PrintsTheStepsThatAreKept) {
  const TemporaryFolder out;
  run_.out = out.path();
  const Checkpoints checkpoints(checkpoints_folder(run_));
  CheckpointSave save(checkpoints, 2950);
  CheckpointIndex index;
  index.global_step = 2950;
  save.finish(index);
  EXPECT_THAT(launch_shells("write_report ''").out,
              testing::EndsWith("\n2,950 global steps kept, 50 after that lost\n"));
  const std::string begun_again = R"(
case $task in ps:0) steps=3035;; *) steps=50; more='"global_step":2950,';; esac; write_report '')";
  EXPECT_THAT(launch_shells(begun_again).out, testing::EndsWith("\n2,950 global steps\n"))
      << "ps:0 has counted steps that were lost, and made again";
  run_.save_every = Interval(0);
  EXPECT_THAT(launch_shells("write_report ''").out,
              testing::EndsWith("\n3,000 global steps (1,500 + 1,500)\n"));
}

// A worker that would otherwise wait for the other tasks learns that they have ended.
TEST_F(Launcher, TellsAWorkerThatNobodyIsLeft) {
  options_.outlives_the_other_job = std::chrono::minutes(10);
  for (const bool meet : {false, true}) {
    options_.workers_meet = meet;
    cluster_.launch.ps = meet ? 0 : 1;
    const Outcome outcome =
        launch_shells("if [ $task = worker:0 ]; then cat; echo alone; fi; write_report ''");
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("worker:0 | alone\n"));
  }
}

TEST_F(Launcher, TasksDieWithIt) {
  const std::string fifo = report_ + ".alive";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const pid_t pid = launch_apart("exec 3> " + fifo + "; echo up >&3; exec sleep 60");
  std::ifstream alive(fifo);
  std::string line;
  for (int up = 0; up < 3 && std::getline(alive, line);) ++up;
  kill(pid, SIGKILL);
  EXPECT_EQ(wait_for(pid).status, -SIGKILL);
  while (std::getline(alive, line)) {
  }
  // The fifo is at its end, so no task holds it open for writing any more.
  EXPECT_TRUE(alive.eof());
  std::filesystem::remove(fifo);
}

TEST_F(Launcher, AUsageErrorOfATaskIsOne) {
  EXPECT_EQ(launch_shells("[ $task = ps:0 ] && sleep 60; exit 2").status, 2);
}

TEST_F(Launcher, TellsEachTaskWhatItHas) {
  cluster_.spec = {{"127.0.0.1:1"}, {"127.0.0.1:2", "127.0.0.1:3"}};
  cluster_.device = {"sim", -1, 36, 0};
  EXPECT_THAT(
      task_arguments(cluster_, {TaskId::Role::kWorker, 1},
                     {.files = {"r.json"}, .cores = 4, .workers = 2}),
      ElementsAre("--launched", "--cluster", "ps=127.0.0.1:1;worker=127.0.0.1:2,127.0.0.1:3",
                  "--task", "worker:1", "--cluster-id", "test", "--report", "r.json", "--device",
                  "sim:1", "--threads", "2"));
  EXPECT_THAT(task_arguments(cluster_, {TaskId::Role::kPs, 0}, {.files = {"r.json"}}),
              Not(testing::Contains("--device")));
}

TEST_F(Launcher, TellsACommandInAVariableWhichTaskItIs) {
  EXPECT_EQ(task_variable({"--launched", "--task", "worker:1", "--threads", "2"}),
            R"({"task":"worker:1","threads":"2"})");
  EXPECT_EQ(task_variable({"--launched", "--insecure", "--tls", "on"}),
            R"({"insecure":true,"tls":"on"})");
  cluster_.links.security.loaded = [] {
    auto security = std::make_shared<LinkSecurity>();
    security->key = SecretKey::make();
    return security;
  }();
  const Outcome run = wait_for(
      launch_commands_apart(R"(echo "$# $PACELINE_TASK"; cat $PACELINE_KEY_FILE | wc -c)"));
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr(R"(worker:1 | 0 {"cluster":"ps=)"),
                             HasSubstr(R"("task":"worker:1")"), HasSubstr(" | 80\n")));
}

// The shell's own child holds the fifo open, and only a signal makes it end.
TEST_F(Launcher, EndsWhatACommandHasStarted) {
  const std::string fifo = report_ + ".alive";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const pid_t pid =
      launch_commands_apart("exec 3> " + fifo + "; sh -c 'echo up >&3; exec sleep 600'; true");
  std::ifstream alive(fifo);
  std::string line;
  for (int up = 0; up < 3 && std::getline(alive, line);) ++up;
  kill(pid, SIGTERM);
  EXPECT_NE(wait_for(pid).status, 0);
  while (std::getline(alive, line)) {
  }
  EXPECT_TRUE(alive.eof());
  std::filesystem::remove(fifo);
}

TEST_F(Launcher, NamesACommandThatCannotBeExecuted) {
  const Outcome run =
      wait_for(launch_apart(LaunchProgram{.path = "no-such-command", .arguments = {}}));
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("cannot execute no-such-command: No such file or directory"));
}

TEST_F(Launcher, AnnouncesWhatIsShared) {
  cluster_.spec = {{"127.0.0.1:1"}, {"127.0.0.1:2", "127.0.0.1:3"}};
  cluster_.device = {"cpu", -1, 0, 0};
  const TaskPlace place{.cores = 2, .workers = 2};
  const Places two{{place, place, place}, "this machine", "  The tasks share 2 cores.\n"};
  EXPECT_THAT(announcement(cluster_, two), HasSubstr("The tasks share 2 cores."));
  EXPECT_THAT(announcement(cluster_, two), HasSubstr("no device"));
  cluster_.device = {"sim", -1, 36, 0};
  EXPECT_THAT(announcement(cluster_, two), HasSubstr("device sim:1, 1 thread"));
  EXPECT_THAT(announcement(cluster_, two), Not(HasSubstr("Warning")));
  cluster_.towers = 3;
  EXPECT_THAT(announcement(cluster_, two), HasSubstr("devices sim:3 to sim:5, 1 thread"));
  cluster_.towers = 1;
  cluster_.device.index = 1;
  EXPECT_THAT(announcement(cluster_, two), HasSubstr("Warning: all 2 workers share device sim:1"));
}

}  // namespace
}  // namespace paceline
