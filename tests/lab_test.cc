// Tests clusters on emulated hosts, which are network namespaces that only root may make.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <optional>

#include "base/deadline.h"
#include "launch/lab/lab.h"
#include "launch/lab/lab_options.h"
#include "paceline/error.h"
#include "tests/process.h"

namespace paceline::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace std::chrono_literals;

const Words kSimulated = {"train",    "mlp", "--hidden",      "48", "--batch", "16",
                          "--device", "sim", "--sim-step-ms", "5"};
const Words kTwoHosts = join({kSimulated, {"--ps", "1", "--workers", "1", "--lab-hosts", "2"}});

Finished run_words(const Words& words) {
  Process process(words);
  const int status = process.wait_exit(60s);
  return {status, process.output()};
}

// Connects to a port on which nobody listens: a host that is reached refuses at once.
bool reaches(const Lab& lab, int host, int other) {
  const std::string connect = "exec 3<>/dev/tcp/" + lab_address(other) + "/9";
  const Finished tried = run_words(lab.on_host(host, {"timeout", "2", "bash", "-c", connect}));
  return tried.output.find("Connection refused") != std::string::npos;
}

// After a link was cut, the system resolves addresses again, which takes a while.
bool reaches_again(const Lab& lab, int host, int other) {
  const Deadline deadline = Deadline::after(std::chrono::seconds(30));
  while (!reaches(lab, host, other)) {
    if (deadline.passed()) return false;
  }
  return true;
}

// Returns the names of the lab namespaces that this process, or a process that it started, has
// made.
std::string namespaces_of(pid_t pid) {
  std::string found;
  std::istringstream names(run_words({"ip", "netns", "list"}).output);
  for (std::string name; names >> name;) {
    if (name.starts_with("paceline-lab-" + std::to_string(pid) + "-")) found += name + " ";
  }
  return found;
}

class LabTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string why = why_no_lab();
    if (!why.empty()) GTEST_SKIP() << why;
  }
  json read(const std::string& name) const {
    std::ifstream file(folder_.path(name));
    return json::parse(file);
  }
  TemporaryFolder folder_;
};

TEST_F(LabTest, HostsReachEachOtherUntilOneIsCutOff) {
  Lab lab(2, {.gbps = 1});
  // A host that is reached refuses at once, since nobody listens on the port.
  EXPECT_TRUE(reaches(lab, 0, 1));
  lab.cut(1);
  EXPECT_FALSE(reaches(lab, 0, 1));
  lab.mend(1);
  EXPECT_TRUE(reaches_again(lab, 0, 1));
}

TEST_F(LabTest, TwoHostsThatArePartedReachTheOthers) {
  Lab lab(3, {.gbps = 1});
  lab.part(1, 2);
  EXPECT_FALSE(reaches(lab, 1, 2));
  EXPECT_TRUE(reaches(lab, 1, 0));
  EXPECT_TRUE(reaches(lab, 2, 0));
  lab.reunite(1, 2);
  EXPECT_TRUE(reaches_again(lab, 1, 2));
}

TEST_F(LabTest, PacketsAreLostUntilTheyAreNotAnyMore) {
  Lab lab(2, {.gbps = 1});
  try {
    lab.lose(1, 0.9999);
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  EXPECT_FALSE(reaches(lab, 0, 1));
  lab.lose(1, 0);
  EXPECT_TRUE(reaches_again(lab, 0, 1));
}

TEST_F(LabTest, LinksHaveTheRateThatWasAskedFor) {
  Lab lab(1, {.gbps = 0.25});
  const auto rate = [&] { return run_words(lab.on_host(0, {"tc", "qdisc", "show"})).output; };
  EXPECT_THAT(rate(), HasSubstr("rate 250Mbit"));
  lab.set_rate(0, 2);
  EXPECT_THAT(rate(), HasSubstr("rate 2Gbit"));
}

TEST_F(LabTest, TasksOfOneHostShareMemoryAndOthersUseTcp) {
  const Finished run =
      run_paceline(join({kSimulated,
                         {"--ps", "1", "--workers", "2", "--steps", "30", "--lab-place", "ps+1/1",
                          "--report", folder_.path("report")}}));
  ASSERT_EQ(run.status, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("10.77.0.1  ps:0, worker:0\n"));
  EXPECT_THAT(run.output, Not(HasSubstr("not encrypted")));  // nobody else can reach it
  const json report = read("report");
  EXPECT_EQ(report["tasks"][0]["links"][0]["kind"], "shm");
  EXPECT_EQ(report["tasks"][1]["links"][0]["kind"], "tcp");
}

TEST_F(LabTest, TheCommandLabAddsHostsToATraining) {
  const Finished run = run_paceline(join({{"lab", "--hosts", "2", "--gbps", "2", "--"},
                                          kSimulated,
                                          {"--ps", "1", "--workers", "1", "--steps", "20"}}));
  EXPECT_EQ(run.status, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("Emulated hosts, with links of 2 Gbit/s:\n"
                                    "  10.77.0.1  ps:0\n  10.77.0.2  worker:0\n"));
}

TEST_F(LabTest, NothingIsLeftOfAnInterruptedRun) {
  Process run(paceline_words(kTwoHosts));
  ASSERT_TRUE(run.wait_for("Step:", 60s)) << run.output();
  EXPECT_NE(namespaces_of(run.pid()), "");
  run.signal(SIGINT);
  EXPECT_EQ(run.wait_exit(60s), 130) << run.output();
  EXPECT_EQ(namespaces_of(run.pid()), "");
}

TEST_F(LabTest, TheNextLabRemovesWhatAKilledOneHasLeft) {
  pid_t pid = 0;
  {
    Process run(paceline_words(kTwoHosts));
    ASSERT_TRUE(run.wait_for("Step:", 60s)) << run.output();
    pid = run.pid();
    run.signal(SIGKILL);
    run.wait_exit(60s);
  }
  EXPECT_NE(namespaces_of(pid), "");
  const Lab next(1, {});
  EXPECT_EQ(namespaces_of(pid), "");
}

TEST(LabUsage, SaysWhatIsMissing) {
  const auto error = [](const Words& words) {
    const Finished run = run_paceline(words);
    EXPECT_EQ(run.status, 2) << run.output;
    return run.output;
  };
  EXPECT_THAT(error({"lab"}), HasSubstr("the command to run is missing: it stands behind --"));
  EXPECT_THAT(error({"lab", "--", "train", "mlp"}), HasSubstr("--hosts N is missing"));
  EXPECT_THAT(error({"lab", "--hosts", "2", "--", "train", "mlp"}),
              HasSubstr("--lab-hosts needs a cluster whose tasks all start here"));
  EXPECT_THAT(error({"lab", "--hosts", "2", "--", "no-such-program"}),
              HasSubstr("no-such-program cannot be run"));
  const Words cluster = {"train", "mlp", "--ps", "1", "--workers", "2"};
  EXPECT_THAT(error(join({cluster, {"--lab-gbps", "2"}})), HasSubstr("needs --lab-hosts N"));
  EXPECT_THAT(error(join({cluster, {"--lab-place", "ps+1"}})),
              HasSubstr("has 1 ps and 1 worker, but the cluster has 1 ps and 2 workers: add --ps 1 "
                        "--workers 1"));
  EXPECT_THAT(error(join({cluster, {"--lab-hosts", "2", "--link", "shm"}})),
              HasSubstr("emulated hosts share no memory"));
}

}  // namespace
}  // namespace paceline::testing
