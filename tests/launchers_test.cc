// Tests processes that know only their rank and one address, and meet there, as torchrun, mpirun
// and others start them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <signal.h>
#include <unistd.h>

#include <memory>

#include "tests/process.h"

namespace paceline::testing {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr seconds kMeetsWithin{100};
const Words kMetJob = {"train", "mlp", "--hidden", "8", "--batch", "4", "--threads", "1"};

std::string port_in(const std::string& address) { return address.substr(address.rfind(':') + 1); }

/// Starts one of `size` processes as a user starts it by hand.
std::unique_ptr<Process> rank_at(int rank, int size, const std::string& port, const Words& flags,
                                 const Words& variables = {"MASTER_ADDR=127.0.0.1"}) {
  return std::make_unique<Process>(
      join({{"env", "RANK=" + std::to_string(rank), "WORLD_SIZE=" + std::to_string(size),
             "MASTER_PORT=" + port},
            variables,
            paceline_words(join({kMetJob, flags}))}));
}

TEST(Meeting, ProcessesOfOneHostFindEachOther) {
  for (const Words& more : {Words{}, Words{"--ps", "1"}}) {
    const std::string port = port_in(free_address());
    std::vector<std::unique_ptr<Process>> ranks;
    for (const int rank : {2, 1, 0})
      ranks.push_back(rank_at(rank, 3, port, join({{"--steps", "60"}, more})));
    for (const auto& rank : ranks) EXPECT_EQ(rank->wait_exit(kMeetsWithin), 0) << rank->output();
    EXPECT_THAT(ranks[0]->output(),
                HasSubstr(fmt::format(
                    "torchrun (RANK=2, WORLD_SIZE=3, MASTER_ADDR=127.0.0.1, "
                    "MASTER_PORT={}) says who this process is: {}",
                    port, more.empty() ? "worker:2 of 0 ps and 3" : "worker:1 of 1 ps and 2")));
  }
}

TEST(Meeting, IsBesideTheAgentOfTorchrunAndAnyProcessMayHoldIt) {
  const std::string agent = free_address();
  std::vector<std::unique_ptr<Process>> ranks;
  for (const int rank : {0, 1}) {
    ranks.push_back(rank_at(rank, 2, port_in(agent), {"--steps", "40"},
                            {"MASTER_ADDR=localhost", "TORCHELASTIC_USE_AGENT_STORE=True",
                             "TORCHELASTIC_RUN_ID=" + agent, "LOCAL_WORLD_SIZE=2"}));
  }
  for (const auto& rank : ranks) EXPECT_EQ(rank->wait_exit(kMeetsWithin), 0) << rank->output();
}

TEST(Meeting, NamesARankThatIsLateToAll) {
  const std::string port = port_in(free_address());
  std::vector<std::unique_ptr<Process>> ranks;
  for (const int rank : {0, 2}) ranks.push_back(rank_at(rank, 3, port, {"--join-timeout", "2"}));
  for (const auto& rank : ranks) {
    EXPECT_EQ(rank->wait_exit(kMeetsWithin), 1);
    EXPECT_THAT(rank->output(), HasSubstr("rank 1 was not there in time (--join-timeout)"));
  }
  const auto alone = rank_at(1, 3, port, {"--join-timeout", "1"});
  EXPECT_EQ(alone->wait_exit(kMeetsWithin), 1);
  EXPECT_THAT(alone->output(),
              AllOf(HasSubstr("the meeting point 127.0.0.1:" + port), HasSubstr("nobody listens")));
}

TEST(Meeting, RefusesADoubledRankAndAnotherSizeAtOnce) {
  const std::string port = port_in(free_address());
  const auto first = rank_at(0, 2, port, {"--steps", "40"});
  const auto other = rank_at(1, 3, port, {});
  EXPECT_EQ(other->wait_exit(kMeetsWithin), 1);
  EXPECT_THAT(other->output(), AllOf(HasSubstr("WORLD_SIZE=3"),
                                     HasSubstr("number of processes is 3, and the meeting point "
                                               "2")));
  const auto again = rank_at(0, 2, port, {});
  EXPECT_EQ(again->wait_exit(kMeetsWithin), 1);
  EXPECT_THAT(again->output(), AllOf(HasSubstr("MASTER_PORT=" + port), HasSubstr("in use")));
  const auto second = rank_at(1, 2, port, {"--steps", "40"});
  EXPECT_EQ(first->wait_exit(kMeetsWithin), 0) << first->output();
  EXPECT_EQ(second->wait_exit(kMeetsWithin), 0) << second->output();
}

TEST(Meeting, LastsSoThatARankMayBeStartedAgain) {
  const std::string port = port_in(free_address());
  std::vector<std::unique_ptr<Process>> ranks;
  for (const int rank : {0, 1, 2}) ranks.push_back(rank_at(rank, 3, port, {}));
  for (const auto& rank : ranks)
    ASSERT_TRUE(rank->wait_for("Step: ", kMeetsWithin)) << rank->output();
  const auto twice = rank_at(2, 3, port, {});
  EXPECT_EQ(twice->wait_exit(kMeetsWithin), 1);
  EXPECT_THAT(twice->output(), HasSubstr("rank 2 has come already"));
  ranks[2]->signal(SIGKILL);
  ranks[2]->wait_exit(kMeetsWithin);
  ranks[2] = rank_at(2, 3, port, {});
  ASSERT_TRUE(ranks[2]->wait_for("Step: ", kMeetsWithin)) << ranks[2]->output();
  for (const auto& rank : ranks) rank->signal(SIGINT);
  for (const auto& rank : ranks) EXPECT_EQ(rank->wait_exit(kMeetsWithin), 130) << rank->output();
}

// The meeting point has an address that other hosts could reach.
TEST(Meeting, BeyondTheLoopbackNeedsTheKeyOfTheJob) {
  const TemporaryFolder folder, other_folder;
  const std::string port = port_in(free_address());
  const Words elsewhere = {"MASTER_ADDR=192.0.2.1", "LOCAL_WORLD_SIZE=1", "HOME=/nonexistent",
                           "XDG_CONFIG_HOME=/nonexistent"};
  const auto open = rank_at(1, 2, port, {}, elsewhere);
  EXPECT_EQ(open->wait_exit(kMeetsWithin), 2);
  EXPECT_THAT(open->output(), AllOf(HasSubstr("the processes meet at 192.0.2.1:" + port),
                                    HasSubstr("paceline key"), HasSubstr("PACELINE_KEY_FILE")));
  const Words loopback = {"MASTER_ADDR=127.0.0.1"};
  const Words sealed = join({{"--tls", "on"}, with_key(folder)});
  const auto first = rank_at(0, 2, port, join({{"--steps", "40"}, sealed}), loopback);
  const auto stranger =
      rank_at(1, 2, port, join({{"--tls", "on"}, with_key(other_folder)}), loopback);
  EXPECT_EQ(stranger->wait_exit(kMeetsWithin), 1);
  EXPECT_THAT(stranger->output(), HasSubstr("key"));
  const auto second = rank_at(1, 2, port, join({{"--steps", "40"}, sealed}), loopback);
  EXPECT_EQ(second->wait_exit(kMeetsWithin), 0) << second->output();
  EXPECT_EQ(first->wait_exit(kMeetsWithin), 0) << first->output();
}

TEST(Meeting, ContradictionsAreNamedBeforeAnythingIsBound) {
  const auto refused = rank_at(3, 3, "1", {});
  EXPECT_EQ(refused->wait_exit(kMeetsWithin), 2);
  EXPECT_THAT(refused->output(), HasSubstr("RANK=3 and WORLD_SIZE=3 contradict each other"));
  const auto slurm =
      rank_at(1, 3, "1", {}, {"MASTER_ADDR=h", "SLURM_STEP_NUM_TASKS=3", "SLURM_PROCID=2"});
  EXPECT_EQ(slurm->wait_exit(kMeetsWithin), 2);
  EXPECT_THAT(slurm->output(), AllOf(HasSubstr("WORLD_SIZE=3, RANK=1"),
                                     HasSubstr("SLURM_STEP_NUM_TASKS=3, SLURM_PROCID=2")));
}

/// Returns the output of a shell command; empty when the command fails.
std::string printed_by(const std::string& command) {
  Process shell({"sh", "-c", command});
  return shell.wait_exit(kMeetsWithin) == 0 ? shell.output() : "";
}

// mpirun gives each job a number of its own, so the processes of two jobs do not meet. The commands
// have Debian's names.
TEST(Meeting, ProcessesOfMpirunFindEachOther) {
  const std::vector<Words> launchers = {
      {"mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"}, {"mpirun.mpich"}};
  int tried = 0;
  for (const Words& launcher : launchers) {
    if (printed_by("command -v " + launcher[0]).empty()) continue;
    ++tried;
    for (const Words& more : {Words{}, Words{"--ps", "1"}}) {
      Process job(
          join({launcher, {"-n", "3"}, paceline_words(join({kMetJob, {"--steps", "40"}, more}))}));
      Process other(
          join({launcher, {"-n", "2"}, paceline_words(join({kMetJob, {"--steps", "40"}}))}));
      EXPECT_EQ(job.wait_exit(kMeetsWithin), 0) << job.output();
      EXPECT_EQ(other.wait_exit(kMeetsWithin), 0) << other.output();
      EXPECT_THAT(job.output(), HasSubstr(more.empty() ? "worker:2 of 0 ps and 3 workers"
                                                       : "worker:1 of 1 ps and 2 workers"));
    }
  }
  if (tried == 0) GTEST_SKIP() << "there is no mpirun (Debian's openmpi-bin, mpich)";
}

}  // namespace
}  // namespace paceline::testing
