// Tests jobs that are started over ssh. A script stands in for ssh, and every host is this machine;
// scripts/test_ssh uses a real sshd.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "base/temporary_folder.h"
#include "run/report/report.h"
#include "tests/process.h"

namespace paceline::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace std::chrono_literals;

const Words kOverTwoHosts = {"--hosts", "127.0.0.1,127.0.0.2", "--ps", "1", "--workers", "2"};

class LaunchOverSsh : public ::testing::Test {
 protected:
  /// Writes a script that stands in for ssh: it does `first`, and then runs its command on this
  /// machine. Returns the words that start a job with this script.
  Words job(const Words& flags, const Words& command, const std::string& first = "") {
    const std::string path = folder_.path("ssh");
    std::ofstream(path) << "#!/bin/sh\nfor last; do :; done\n" << first << "\nsh -c \"$last\"\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return join({{"launch", "--ssh", path}, flags, {"--"}, command});
  }
  Finished run(const Words& flags, const Words& command, const std::string& first = "") {
    return run_paceline(job(flags, command, first), 100s);
  }
  static Words shell(const std::string& script) { return {"sh", "-c", script}; }

  const TemporaryFolder folder_;
};

TEST_F(LaunchOverSsh, TrainsOnSeveralHosts) {
  const std::string report = folder_.path("report.json");
  const Finished trained = run(join({kOverTwoHosts, {"--report", report}}),
                               {"train", "mlp", "--hidden", "8", "--steps", "40"});
  EXPECT_EQ(trained.status, 0) << trained.output;
  EXPECT_THAT(trained.output, AllOf(HasSubstr("on 2 hosts over ssh (127.0.0.1, 127.0.0.2)"),
                                    HasSubstr("worker:1  127.0.0.2:"), HasSubstr("global steps")));
  const Report merged = read_report(report);
  EXPECT_EQ(merged.tasks.size(), 3U);
  EXPECT_THAT(merged.tls, HasSubstr("links that leave the host (key "));
}

TEST_F(LaunchOverSsh, HandsOnEveryByteOfChosenVariablesAndOfArguments) {
  const std::string odd = " a\n\"b\"\t'c' $HOME `d` \\ \xff=";
  const std::string seen = folder_.path("seen");
  const Finished echoed =
      run(join({{"--hosts", "localhost", "--ps", "0", "--workers", "1", "--env", "ODD=" + odd},
                {"--env", "OUT=" + seen, "--cwd", folder_.path()}}),
          join({shell(R"(printf '%s|%s|%s' "$ODD" "$1" "$PWD" > "$OUT")"), {"sh", odd}}));
  EXPECT_EQ(echoed.status, 0) << echoed.output;
  std::ifstream file(seen, std::ios::binary);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}),
            odd + "|" + odd + "|" + std::filesystem::canonical(folder_.path()).string());
  const Finished unset =
      run({"--hosts", "localhost", "--ps", "0", "--workers", "1", "--env", "NOPE"}, {"true"});
  EXPECT_EQ(unset.status, 2);
  EXPECT_THAT(unset.output, HasSubstr("--env NOPE: is not set here"));
}

TEST_F(LaunchOverSsh, PassesOnLongOutputAndNoNoiseOfAShell) {
  const Finished run =
      this->run({"--hosts", "localhost", "--ps", "0", "--workers", "2"},
                shell("head -c 3000000 /dev/zero | tr '\\0' x; echo; echo bad >&2; printf end"),
                "echo Welcome; printf 'no end of line'");
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(std::ranges::count(run.output, 'x'), 6'000'000);
  EXPECT_THAT(run.output.substr(run.output.size() - 200), HasSubstr("| end\n"));
  EXPECT_THAT(run.output.substr(0, 300), Not(HasSubstr("Welcome")));
}

TEST_F(LaunchOverSsh, NamesTheHostThatCannotBeUsed) {
  const Words two = {"--hosts", "127.0.0.1,127.0.0.2", "--ps", "0", "--workers", "2"};
  const Finished folder = run(join({two, {"--cwd", "/nowhere"}}), {"true"});
  EXPECT_EQ(folder.status, 1);
  EXPECT_THAT(folder.output, AllOf(HasSubstr("host 127.0.0.1: folder /nowhere: No such file"),
                                   HasSubstr("host 127.0.0.2: folder /nowhere: No such file"),
                                   HasSubstr("--cwd DIR names another")));
  EXPECT_THAT(run(two, {"./no-such-program"}).output,
              HasSubstr("host 127.0.0.2: there is no program ./no-such-program (in folder "));
  EXPECT_THAT(run(two, {"no-such-program"}).output,
              HasSubstr("there is no program no-such-program in its PATH"));
  const Finished refused =
      run(two, {"true"}, "echo 'a@b: Permission denied (publickey).' >&2; exit 255");
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.output, HasSubstr("host 127.0.0.2 cannot be reached: a@b: Permission denied "
                                        "(publickey): ssh-copy-id 127.0.0.2 puts your key there"));
  EXPECT_THAT(run(two, {"true"}, "echo 'paceline agent, version 0.0.1 abc'; exec sleep 60").output,
              AllOf(HasSubstr("host 127.0.0.1: "), HasSubstr("is version 0.0.1 abc there and "),
                    HasSubstr("install the same one there")));
  EXPECT_THAT(run({"--hosts", "localhost,b", "--ps", "0", "--workers", "2"}, {"true"}).output,
              HasSubstr("--hosts: 'localhost' means another host to each host"));
}

TEST_F(LaunchOverSsh, NamesAPortThatIsTaken) {
  const std::string taken = free_address();
  const std::string port = taken.substr(taken.rfind(':') + 1);
  const Process holder(paceline_words({"server", "--bind", taken}));
  const auto listens = [&] {
    try {
      close(connect_to(taken));
      return true;
    } catch (const std::exception&) {
      return false;
    }
  };
  const auto until = std::chrono::steady_clock::now() + 60s;
  while (!listens() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  const Finished run = this->run(
      {"--hosts", "localhost", "--ps", "0", "--workers", "1", "--first-port", port}, {"true"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(
      run.output,
      HasSubstr(fmt::format(
          "host localhost: no port {} on 127.0.0.1: Address already in use (for worker:0", port)));
}

TEST_F(LaunchOverSsh, ATaskThatFailsEndsTheOthersAndSaysWhere) {
  const Finished run = this->run(
      kOverTwoHosts, shell("case $PACELINE_TASK in *worker:1*) exit 7;; esac; exec sleep 600"));
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.output, HasSubstr("worker:1 (on 127.0.0.2) failed first: exit status 7"));
  EXPECT_EQ(this->run(kOverTwoHosts, {"train", "mlp", "--hidden", "no"}).status, 2);
}

TEST_F(LaunchOverSsh, ATaskThatIsKilledIsStartedAgain) {
  const std::string once = folder_.path("once");
  const Finished run = this->run(join({kOverTwoHosts, {"--on-failure", "restart"}}),
                                 shell("case $PACELINE_TASK in *worker:1*) if mkdir " + once +
                                       " 2>/dev/null; then kill -9 $$; fi;; esac"));
  EXPECT_EQ(run.status, 0) << run.output;
  EXPECT_THAT(run.output,
              HasSubstr("worker:1 has ended (killed by signal 9 (Killed)): it is started again"));
}

// All processes of a job hold the fifo open for writing until they end, so its reader sees the end
// of the fifo once all have ended.
class LeavesNothing : public LaunchOverSsh {
 protected:
  LeavesNothing() { EXPECT_EQ(mkfifo(fifo_.c_str(), 0600), 0); }
  /// Starts a job of three tasks with two processes each, and waits until all have started.
  std::unique_ptr<Process> begun(const std::string& traps, const Words& flags = {}) {
    const Words command = shell(traps + " exec 3>" + fifo_ + "; sh -c '" + traps +
                                " echo up; while :; do sleep 1; done'; true");
    auto process =
        std::make_unique<Process>(paceline_words(job(join({kOverTwoHosts, flags}), command)));
    alive_.open(fifo_);
    for (int i = 0; i < 3; ++i)
      EXPECT_TRUE(process->wait_for_next("| up", 60s)) << process->output();
    return process;
  }
  /// Returns once no process holds the fifo open any more.
  void wait_for_the_last() {
    std::string line;
    while (std::getline(alive_, line)) {
    }
    EXPECT_TRUE(alive_.eof());
  }

  const std::string fifo_ = folder_.path("alive");
  std::ifstream alive_;
};

TEST_F(LeavesNothing, AfterCtrlC) {
  const auto process = begun("");
  process->signal(SIGINT);
  EXPECT_EQ(process->wait_exit(60s), 130) << process->output();
  wait_for_the_last();
}

TEST_F(LeavesNothing, AfterASecondCtrlCOfTasksThatHeedNone) {
  const auto process = begun("trap \"\" INT TERM;");
  int status = -1;
  // A second signal that comes too soon counts as a part of the first.
  for (int i = 0; i < 60 && status < 0; ++i) {
    process->signal(SIGINT);
    status = process->wait_exit(1s);
  }
  EXPECT_EQ(status, 130) << process->output();
  wait_for_the_last();
}

TEST_F(LeavesNothing, WhenTheLauncherIsKilledThoughTasksHeedNoSignal) {
  const auto process = begun("trap \"\" TERM;");
  process->signal(SIGKILL);
  process->wait_exit(60s);
  wait_for_the_last();
}

TEST_F(LeavesNothing, WhenSshIsKilledWhichFailsTheJob) {
  const auto process = begun("");
  const std::string children = fmt::format("/proc/{0}/task/{0}/children", process->pid());
  std::ifstream list(children);
  pid_t ssh = -1;
  std::string words;
  for (pid_t child = 0; list >> child;) {
    std::ifstream file(fmt::format("/proc/{}/cmdline", child));
    words.assign(std::istreambuf_iterator<char>(file), {});
    if (words.find("--agent") != words.npos) ssh = child;
  }
  ASSERT_GT(ssh, 0);
  kill(ssh, SIGKILL);
  EXPECT_EQ(process->wait_exit(60s), 1) << process->output();
  EXPECT_THAT(process->output(), HasSubstr("failed first: the connection to host 127.0.0."));
  wait_for_the_last();
}

}  // namespace
}  // namespace paceline::testing
