#include "cluster/flags/launch_environment.h"

#include <gmock/gmock.h>

#include <map>

#include "base/testing/error_of.h"

namespace paceline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

Environment environment_of(const Variables& variables) {
  return [&variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

std::string refusal_under(const Variables& variables, const FlagValues& values = {}) {
  return error_of(ErrorCode::kUsage,
                  [&] { check_one_of_several(values, environment_of(variables)); });
}

// As each system was seen to set them; the last is empty where one process is meant.
TEST(LaunchEnvironment, SeveralProcessesAreRefusedInWords) {
  const std::vector<std::pair<Variables, std::string>> cases = {
      {{{"SLURM_NTASKS", "4"}, {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "2"}},
       "Slurm has started 4 processes of this command (SLURM_STEP_NUM_TASKS=4, SLURM_PROCID=2)"},
      {{{"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "7"}, {"SLURM_PROCID", "0"}}, ""},
      {{{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PROCID", "0"}}, ""},
      {{{"WORLD_SIZE", "2"}, {"RANK", "1"}, {"LOCAL_RANK", "1"}, {"MASTER_ADDR", "h"}},
       "torchrun has started 2 processes of this command (WORLD_SIZE=2, RANK=1)"},
      {{{"WORLD_SIZE", "1"}, {"RANK", "0"}}, ""},
      {{{"PET_NNODES", "1:3"}, {"PET_NPROC_PER_NODE", "1"}},
       "Kubeflow (PET) has started 3 processes of this command (PET_NNODES=1:3)"},
      {{{"PET_NNODES", "1"}, {"PET_NPROC_PER_NODE", "4"}}, ""},
      {{{"OMPI_COMM_WORLD_SIZE", "3"}, {"OMPI_COMM_WORLD_RANK", "0"}, {"PMIX_RANK", "0"}},
       "Open MPI has started 3 processes of this command (OMPI_COMM_WORLD_SIZE=3, "},
      {{{"OMPI_COMM_WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "0"}, {"PMIX_RANK", "0"}}, ""},
      {{{"PMI_SIZE", "8"}, {"PMI_RANK", "7"}}, "MPI (PMI) has started 8 processes"},
      {{{"PMIX_RANK", "0"}}, "MPI (PMIx) has started processes of this command (PMIX_RANK=0)"},
      // A step of Slurm of one process starts a torchrun.
      {{{"SLURM_STEP_NUM_TASKS", "1"}, {"WORLD_SIZE", "4"}, {"RANK", "3"}}, "torchrun has started"},
      {{{"WORLD_SIZE", "x"}, {"RANK", "3"}}, "torchrun has started processes of this command"},
      {{{"WORLD_SIZE", ""}, {"PMIX_RANK", ""}}, ""},
      {{}, ""}};
  for (const auto& [variables, why] : cases) {
    const std::string refusal = refusal_under(variables);
    if (why.empty()) {
      EXPECT_EQ(refusal, "");
      continue;
    }
    EXPECT_THAT(refusal, AllOf(HasSubstr(why), HasSubstr("--task worker:$"), HasSubstr("--alone")));
  }
}

TEST(LaunchEnvironment, WhoSaysItsTaskOrMeansItIsNotRefused) {
  const Variables four = {{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "2"}};
  for (const char* const flag : {"--alone", "--task", "--job-name", "--one-task", "--launched"}) {
    FlagValues values;
    values.add(flag, "worker:1");
    EXPECT_EQ(refusal_under(four, values), "") << flag;
  }
  FlagValues launcher;
  launcher.add("--workers", "2");
  EXPECT_THAT(refusal_under(four, launcher), HasSubstr("each would start all tasks of the job"));
}

TEST(LaunchEnvironment, TfConfigGivesFlags) {
  EXPECT_TRUE(flags_of_environment(environment_of({})).empty());
  const Variables variables = {
      {"TF_CONFIG",
       R"({"cluster":{"ps":["b:1"],"worker":["c:1"]},"task":{"type":"ps","index":0}})"}};
  const std::vector<GivenFlag> flags = flags_of_environment(environment_of(variables));
  ASSERT_EQ(flags.size(), 2u);
  EXPECT_EQ(flags[1].values[0], "ps:0");
}

TEST(LaunchEnvironment, DevicesThatAreNotUsedAreSaid) {
  const auto said = [](const Variables& variables) {
    return unused_devices(environment_of(variables));
  };
  EXPECT_THAT(said({{"CUDA_VISIBLE_DEVICES", "0,1"}}), HasSubstr("CUDA_VISIBLE_DEVICES=0,1: "));
  for (const char* const none : {"", "-1"}) EXPECT_EQ(said({{"CUDA_VISIBLE_DEVICES", none}}), "");
  EXPECT_EQ(said({}), "");
}

}  // namespace
}  // namespace paceline
