// Tests the key of a job: `paceline key`, who needs a key, and where the key must never appear.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <regex>

#include "launch/lab/lab.h"
#include "net/tls/link_security.h"
#include "run/report/report.h"
#include "tests/process.h"

namespace paceline::testing {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const Words kTrainedByKey = {"train", "mlp", "--hidden", "16", "--batch", "8", "--threads", "1"};

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

unsigned mode_of(const std::string& path) {
  struct stat state = {};
  EXPECT_EQ(::stat(path.c_str(), &state), 0) << path;
  return state.st_mode & 07777;
}

/// A user who has no folder for keys yet.
class Key : public ::testing::Test {
 protected:
  Key() {
    ::setenv("XDG_CONFIG_HOME", folder_.path("of/a/user").c_str(), 1);
    ::unsetenv("PACELINE_KEY_FILE");
  }
  ~Key() override { ::unsetenv("XDG_CONFIG_HOME"); }

  const TemporaryFolder folder_;
  const std::string file_ = folder_.path("of/a/user/paceline/key");
};

TEST_F(Key, IsMadeForItsOwnerAloneAndNeverPrinted) {
  const Finished made = run_paceline({"key"});
  ASSERT_EQ(made.status, 0) << made.output;
  EXPECT_EQ(mode_of(file_), 0600U);
  EXPECT_EQ(mode_of(folder_.path("of/a/user/paceline")), 0700U);
  const SecretKey key = SecretKey::read(file_);
  EXPECT_THAT(made.output, AllOf(HasSubstr(file_), HasSubstr(key.fingerprint()),
                                 HasSubstr("ssh HOST 'umask 077 && mkdir -p ~/.config/paceline && "
                                           "cat > ~/.config/paceline/key' < " +
                                           file_),
                                 HasSubstr("kubectl create secret generic paceline-key "
                                           "--from-file=key=" +
                                           file_),
                                 Not(HasSubstr(key.text().substr(15, 64)))));
  const Finished shown = run_paceline({"key", "--show"});
  EXPECT_EQ(shown.output, key.fingerprint() + "  " + file_ + "\n");
}

TEST_F(Key, IsWrittenOverOnlyOnRequest) {
  const std::string file = folder_.path("a.key");
  ASSERT_EQ(run_paceline({"key", file}).status, 0);
  const std::string first = content_of(file);
  const Finished again = run_paceline({"key", file});
  EXPECT_EQ(again.status, 2);
  EXPECT_THAT(again.output, HasSubstr("there is a key in " + file + " already"));
  EXPECT_EQ(content_of(file), first);
  EXPECT_EQ(run_paceline({"key", file, "--replace"}).status, 0);
  EXPECT_NE(content_of(file), first);
  EXPECT_EQ(mode_of(file), 0600U);
}

TEST_F(Key, ThatIsMissingIsSaid) {
  const Finished shown = run_paceline({"key", "--show"});
  EXPECT_EQ(shown.status, 1);
  EXPECT_THAT(shown.output, HasSubstr("`paceline key` makes one"));
}

TEST_F(Key, IsNeededForTasksOnOtherHosts) {
  const Words task =
      join({kTrainedByKey,
            {"--cluster", "ps=" + free_address() + ";worker=192.0.2.1:1", "--task", "ps:0"}});
  const Finished refused = run_paceline(task, seconds(20));
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.output, AllOf(HasSubstr("worker:0 at 192.0.2.1:1 is on another host"),
                                    HasSubstr("`paceline key`"), HasSubstr("--insecure"),
                                    Not(HasSubstr("listening"))));
  const std::string address = free_address();
  const std::string bind = "0.0.0.0" + address.substr(address.rfind(':'));
  const Words server = {"server", "--bind", bind};
  const Finished open = run_paceline(server, seconds(20));
  EXPECT_EQ(open.status, 2);
  EXPECT_THAT(open.output, HasSubstr("--bind " + bind + ": workers of other hosts may come"));
  ASSERT_EQ(run_paceline({"key"}).status, 0);
  for (const Words& words : {task, server}) {
    Process with_key(paceline_words(words));
    EXPECT_TRUE(with_key.wait_for("listening on", seconds(20))) << with_key.output();
  }
}

TEST_F(Key, OfWhoeverGivesItUpIsMissedAtTheStartAndInTheReport) {
  const std::string given_up =
      "whoever reaches a port may join the job, read and change what is sent";
  const Finished run = run_paceline(join({kTrainedByKey,
                                          {"--ps", "1", "--workers", "1", "--steps", "20",
                                           "--insecure", "--report", folder_.path("report")}}),
                                    seconds(60));
  ASSERT_EQ(run.status, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("warning launcher: --insecure: " + given_up));
  EXPECT_EQ(read_report(folder_.path("report")).tls, "none (--insecure): " + given_up);
}

/// Returns the process of the launcher and those of its tasks.
std::vector<pid_t> processes_of(pid_t launcher) {
  std::vector<pid_t> all = {launcher};
  const std::string pid = std::to_string(launcher);
  std::istringstream children(content_of("/proc/" + pid + "/task/" + pid + "/children"));
  for (pid_t child = 0; children >> child;) all.push_back(child);
  return all;
}

// Expects that `text` contains no key. `where` says what the text is: the output of `ps`, /proc, a
// log, a report or a file of the run.
void expect_no_key(const std::string& text, const std::string& where) {
  static const std::regex digits("[0-9a-f]{64}");
  EXPECT_FALSE(std::regex_search(text, digits)) << where;
  EXPECT_THAT(text, Not(HasSubstr("paceline-key-1:"))) << where;
}

TEST_F(Key, OfAJobStandsInNoCommandLineNoEnvironmentNoLogAndNoFile) {
  for (const bool of_the_user : {false, true}) {
    if (of_the_user) run_paceline({"key"});
    EXPECT_EQ(std::filesystem::exists(file_), of_the_user);
    const std::string out = folder_.path(of_the_user ? "users" : "launchers");
    Process job(
        paceline_words(join({kTrainedByKey,
                             {"--ps", "1", "--workers", "2", "--tls", "on", "--steps", "1000000000",
                              "--out", out, "--log-level", "debug", "--dashboard", "0"}})));
    for (const char* const worker : {"worker:0", "worker:1"})
      ASSERT_TRUE(job.wait_for(std::string(worker) + " | Step: 10 ", seconds(60))) << job.output();
    const std::vector<pid_t> processes = processes_of(job.pid());
    EXPECT_EQ(processes.size(), 4U);
    for (const pid_t pid : processes) {
      const std::string place = "/proc/" + std::to_string(pid);
      expect_no_key(content_of(place + "/environ"), place + "/environ");
      const std::string words = content_of(place + "/cmdline");
      expect_no_key(words, place + "/cmdline");
      EXPECT_EQ(words.find("/dev/fd/") != std::string::npos, pid != job.pid()) << words;
    }
    job.signal(SIGINT);
    EXPECT_EQ(job.wait_exit(seconds(60)), 130) << job.output();
    expect_no_key(job.output(), "the output");
    int files = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(out)) {
      if (!entry.is_regular_file()) continue;
      ++files;
      expect_no_key(content_of(entry.path()), entry.path());
    }
    EXPECT_GT(files, 2);
    const Report report = read_report(out);
    EXPECT_THAT(report.tls, HasSubstr("all links (key "));
    for (const TaskReport& task : report.tasks) {
      EXPECT_EQ(task.links.size(), task.is_worker() ? 1U : 0U);
      for (const LinkReport& link : task.links) EXPECT_TRUE(link.encrypted) << task.task;
    }
  }
}

TEST_F(Key, OfALauncherReachesTheTasksOnEmulatedHosts) {
  if (const std::string why = why_no_lab(); !why.empty()) GTEST_SKIP() << why;
  const Words job = join({kTrainedByKey,
                          {"--ps", "1", "--workers", "1", "--lab-hosts", "2", "--steps", "20",
                           "--report", folder_.path("report")}});
  const Finished run = run_paceline(job, seconds(60));
  ASSERT_EQ(run.status, 0) << run.output;
  EXPECT_THAT(read_report(folder_.path("report")).tls,
              HasSubstr("links that leave the host (key "));
  const Finished open = run_paceline(join({job, {"--insecure"}}), seconds(60));
  ASSERT_EQ(open.status, 0) << open.output;
  EXPECT_THAT(read_report(folder_.path("report")).tls, HasSubstr("none (--insecure)"));
}

}  // namespace
}  // namespace paceline::testing
