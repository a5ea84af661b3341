// Tests workers that mpirun starts: MPI's sums as an engine, whole runs, and a rank that is lost.
// Skipped if there is no mpirun, or if the build has no plug-in for MPI.
#include <gmock/gmock.h>

#include <signal.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/temporary_folder.h"
#include "tests/process.h"

namespace paceline::testing {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr seconds kWithin{120};
const char* const kPlugin = PACELINE_BUILD "/libpaceline_mpi.so";
const Words kSmallWithMpi = {"train", "mlp", "--batch", "8", "--hidden", "32", "--threads", "1"};

bool has_mpirun() {
  Process version({"sh", "-c", "command -v mpirun"});
  return version.wait_exit(kWithin) == 0;
}

int times_in(const std::string& text, const std::string& what) {
  int times = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at) ++times;
  return times;
}

class Mpi : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kPlugin)) {
      GTEST_SKIP() << "this build has no plug-in for MPI (scripts/install_dependencies --mpi)";
    }
    if (!has_mpirun()) GTEST_SKIP() << "there is no mpirun (Debian's openmpi-bin)";
  }
  static Words mpirun(int ranks, const Words& command) {
    return join({{"mpirun", "--allow-run-as-root", "--oversubscribe", "-n", std::to_string(ranks)},
                 command});
  }
  static Finished run(int ranks, const Words& command) {
    Process process(mpirun(ranks, command));
    const int status = process.wait_exit(kWithin);
    return {status, process.output()};
  }
};

TEST_F(Mpi, SumsAreRightAndTheSameOnEveryRank) {
  for (const int ranks : {2, 4}) {
    const Finished values = run(ranks, {PACELINE_MPI_VALUES, "--gtest_color=no"});
    EXPECT_EQ(values.status, 0) << values.output;
    EXPECT_THAT(values.output, HasSubstr("[  PASSED  ] 2 tests")) << values.output;
  }
}

TEST_F(Mpi, TrainsWithoutAnyFlagOfACluster) {
  for (const char* const engine : {"mpi", "link"}) {
    const Finished trained =
        run(4, paceline_words(join({kSmallWithMpi, {"--steps", "30", "--collectives", engine}})));
    EXPECT_EQ(trained.status, 0) << trained.output;
    EXPECT_EQ(times_in(trained.output, "30 global steps (30 here)"), 4) << trained.output;
  }
}

// If the processes are on several hosts, MPI exchanges their addresses, but the links are
// Paceline's own.
TEST_F(Mpi, ExchangesTheAddressesOfSeveralHosts) {
  const Finished trained =
      run(3, join({{"env", "OMPI_COMM_WORLD_LOCAL_SIZE=1"},
                   paceline_words(join({kSmallWithMpi, {"--steps", "30", "--ps", "1"}}))}));
  EXPECT_EQ(trained.status, 0) << trained.output;
  EXPECT_EQ(times_in(trained.output, "Open MPI (rank "), 3) << trained.output;
  EXPECT_EQ(times_in(trained.output, "of 1 ps and 2 workers"), 3) << trained.output;
}

// The model has sparse variables, and the mean is clipped by its norm.
TEST_F(Mpi, TrainsALanguageModel) {
  const TemporaryFolder folder;
  ASSERT_EQ(
      run_paceline({"data", "corpus", "--out", folder.path("text"), "--words", "20000"}).status, 0);
  const Finished trained =
      run(2, paceline_words({"train", "ptb", "--data", folder.path("text"), "--size", "test",
                             "--steps", "12", "--threads", "1", "--collectives", "mpi"}));
  EXPECT_EQ(trained.status, 0) << trained.output;
}

// The first rank writes the file. Under mpirun, the case measures MPI alone.
TEST_F(Mpi, TheBenchHasItsTimesBySize) {
  const TemporaryFolder folder;
  const std::string file = folder.path("figures.json");
  const Finished measured =
      run(2, paceline_words({"bench", "collectives", "--repeat", "1", "--json", file}));
  ASSERT_EQ(measured.status, 0) << measured.output;
  const auto json = nlohmann::json::parse(std::ifstream(file));
  ASSERT_EQ(json["figures"].size(), 5U);
  EXPECT_EQ(json["figures"][0]["name"], "4 KB between 2, mpi");
  EXPECT_GT(json["figures"][4]["value"]["median"], 0);
}

// Returns the process that mpirun has started as this rank for the test of a lost rank; −1 if there
// is none.
pid_t process_of_rank(int rank) {
  const std::string wanted = "OMPI_COMM_WORLD_RANK=" + std::to_string(rank);
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entry.path() / "environ", std::ios::binary);
    const std::string environment{std::istreambuf_iterator<char>(file), {}};
    const bool of_test = environment.find("PACELINE_MPI_TEST=lost") != std::string::npos;
    if (of_test && environment.find(wanted + '\0') != std::string::npos) return std::stoi(name);
  }
  return -1;
}

TEST_F(Mpi, ALostRankEndsTheJobAndIsNamed) {
  ::setenv("PACELINE_MPI_TEST", "lost", 1);
  Process job(mpirun(4, paceline_words(join({kSmallWithMpi, {"--collectives", "mpi"}}))));
  ::unsetenv("PACELINE_MPI_TEST");
  ASSERT_TRUE(job.wait_for("Step: ", kWithin)) << job.output();
  const pid_t victim = process_of_rank(2);
  ASSERT_GT(victim, 0);
  ::kill(victim, SIGKILL);
  EXPECT_GT(job.wait_exit(kWithin), 0);
  EXPECT_THAT(job.output(), AnyOf(HasSubstr("error: worker:2"), HasSubstr("process rank 2")));
}

TEST(MpiEngine, NeedsMpirun) {
  for (const Words& more : {Words{}, Words{"--ps", "0", "--workers", "2"}}) {
    const Finished refused = run_paceline(join({kSmallWithMpi, {"--collectives", "mpi"}, more}));
    EXPECT_EQ(refused.status, 2);
    EXPECT_THAT(refused.output, HasSubstr("mpirun -n 4 paceline train mlp --collectives mpi"));
  }
}

// A program alone in its folder finds no plug-in, like a build without MPI.
TEST(MpiEngine, ABuildWithoutItSaysWhatToInstall) {
  const TemporaryFolder folder;
  const std::string alone = folder.path("paceline");
  std::filesystem::copy_file(PACELINE_COMMAND, alone);
  Process task(join({{"env", "OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_LOCAL_SIZE=1", alone},
                     kSmallWithMpi,
                     {"--collectives", "mpi"}}));
  EXPECT_EQ(task.wait_exit(kWithin), 1) << task.output();
  EXPECT_THAT(task.output(), AllOf(HasSubstr("libopenmpi-dev"), HasSubstr("openmpi-bin")));
}

}  // namespace
}  // namespace paceline::testing
