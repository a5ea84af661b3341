#include "cli/flags/launch_environment.h"

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

/// Returns the values of a command line with these pairs of a flag and its value.
FlagValues flags_with(const std::vector<std::pair<std::string, std::string>>& given) {
  FlagValues values;
  for (const auto& [flag, value] : given) values.add(flag, value);
  return values;
}

// Each system really set these variables. The text is empty where there is only one process.
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
      // Slurm started one process, which started a torchrun.
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

TEST(LaunchEnvironment, ANumberWithoutTheirCountIsRefused) {
  const Variables torchrun = {{"RANK", "0"}, {"MASTER_ADDR", "h"}, {"MASTER_PORT", "1"}};
  EXPECT_THAT(refusal_under(torchrun),
              HasSubstr("torchrun: WORLD_SIZE is not set, and RANK=0, MASTER_ADDR=h says"));
  EXPECT_THAT(refusal_under({{"SLURM_PROCID", "1"}}),
              HasSubstr("Slurm: SLURM_STEP_NUM_TASKS is not set, and SLURM_PROCID=1 says"));
  EXPECT_EQ(refusal_under({{"RANK", "0"}}), "");
  EXPECT_EQ(refusal_under({{"MASTER_ADDR", "h"}, {"MASTER_PORT", "1"}}), "");
  EXPECT_EQ(refusal_under(torchrun, flags_with({{"--alone", ""}})), "");
  EXPECT_EQ(refusal_under(torchrun, flags_with({{"--launcher", "none"}})), "");
  // Another reader handles the variables of a process in a step of Slurm.
  EXPECT_THAT(refusal_under({{"SLURM_STEP_NUM_TASKS", "1"}, {"RANK", "1"}}), "");
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

const char* const kTfConfigOfPs =
    R"({"cluster":{"ps":["b:1"],"worker":["c:1"]},"task":{"type":"ps","index":0}})";

TEST(LaunchEnvironment, TfConfigGivesFlags) {
  EXPECT_TRUE(flags_of_environment({}, environment_of({})).empty());
  const std::vector<GivenFlag> flags =
      flags_of_environment({}, environment_of({{"TF_CONFIG", kTfConfigOfPs}}));
  ASSERT_EQ(flags.size(), 2u);
  EXPECT_EQ(flags[1].values[0], "ps:0");
}

const Variables kSlurmOfFour = {{"SLURM_JOB_ID", "7"},
                                {"SLURM_STEP_ID", "0"},
                                {"SLURM_STEP_NUM_TASKS", "4"},
                                {"SLURM_STEP_NODELIST", "n[1-2]"},
                                {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"},
                                {"SLURM_PROCID", "3"}};

Variables beside(Variables variables, const Variables& more) {
  for (const auto& [name, text] : more) variables[name] = text;
  return variables;
}

TEST(LaunchEnvironment, LauncherNamesTheSourceThatCounts) {
  const Variables both = beside(kSlurmOfFour, {{"TF_CONFIG", kTfConfigOfPs}});
  const auto flags = [&](const FlagValues& values, const Variables& variables) {
    const Environment environment = environment_of(variables);
    std::vector<GivenFlag> all = flags_of_environment(values, environment);
    for (const GivenFlag& flag : flags_of_launcher(values, environment)) all.push_back(flag);
    return all;
  };
  EXPECT_EQ(flags(flags_with({{"--launcher", "slurm"}}), both)[1].values[0], "worker:3");
  EXPECT_EQ(flags(flags_with({{"--launcher", "tf_config"}}), both)[1].values[0], "ps:0");
  EXPECT_TRUE(flags(flags_with({{"--launcher", "none"}}), both).empty());
  EXPECT_TRUE(flags(flags_with({{"--alone", ""}}), both).empty());
  const auto refusal = [&](const FlagValues& values) {
    return error_of(ErrorCode::kUsage, [&] { flags(values, {}); });
  };
  EXPECT_THAT(refusal(flags_with({{"--launcher", "slurm"}})),
              HasSubstr("--launcher slurm: the environment has no SLURM_STEP_NUM_TASKS"));
  EXPECT_THAT(refusal(flags_with({{"--launcher", "tf_config"}})), HasSubstr("has no TF_CONFIG"));
  EXPECT_THAT(refusal(flags_with({{"--launcher", "slrum"}})), HasSubstr("slurm"));
  EXPECT_THAT(refusal(flags_with({{"--launcher", "slurm"}, {"--alone", ""}})),
              HasSubstr("--alone"));
}

std::string contradiction(const Variables& variables, const FlagValues& values = {}) {
  const Environment environment = environment_of(variables);
  return error_of(ErrorCode::kUsage, [&] {
    check_sources_agree(values, flags_of_environment({}, environment), environment);
  });
}

std::string tf_config_of(int workers, int index) {
  std::string addresses;
  for (int i = 0; i < workers; ++i)
    addresses += (i > 0 ? ",\"n" : "\"n") + std::to_string(i) + ":1\"";
  return R"({"cluster":{"worker":[)" + addresses + R"(]},"task":{"type":"worker","index":)" +
         std::to_string(index) + "}}";
}

TEST(LaunchEnvironment, SourcesThatContradictEachOtherAreNamed) {
  const Variables other_rank = beside(kSlurmOfFour, {{"TF_CONFIG", tf_config_of(4, 1)}});
  EXPECT_THAT(contradiction(other_rank),
              AllOf(HasSubstr("TF_CONFIG and Slurm contradict each other: TF_CONFIG makes this "
                              "process worker:1 of 4 tasks, and SLURM_STEP_NUM_TASKS=4, "
                              "SLURM_PROCID=3"),
                    HasSubstr("--launcher tf_config or --launcher slurm")));
  EXPECT_THAT(contradiction(beside(kSlurmOfFour, {{"TF_CONFIG", tf_config_of(5, 3)}})),
              HasSubstr("worker:3 of 5 tasks"));
  EXPECT_EQ(contradiction(beside(kSlurmOfFour, {{"TF_CONFIG", tf_config_of(4, 3)}})), "");
  EXPECT_THAT(contradiction(beside(kSlurmOfFour, {{"TF_CONFIG", kTfConfigOfPs}})),
              HasSubstr("ps:0 of 2 tasks"));
  // A script has set torchrun's variables from Slurm's.
  const Variables by_hand = {{"WORLD_SIZE", "4"}, {"RANK", "2"}};
  EXPECT_THAT(contradiction(beside(kSlurmOfFour, by_hand)),
              HasSubstr("WORLD_SIZE=4, RANK=2, and SLURM_STEP_NUM_TASKS=4, SLURM_PROCID=3"));
  EXPECT_EQ(contradiction(beside(kSlurmOfFour, {{"WORLD_SIZE", "4"}, {"RANK", "3"}})), "");
  // The tasks of a Slurm step run torchrun or mpirun, and the processes of these are the job's.
  EXPECT_EQ(contradiction(beside(beside(kSlurmOfFour, by_hand), {{"TORCHELASTIC_RUN_ID", "x"}})),
            "");
  EXPECT_EQ(contradiction(beside(kSlurmOfFour,
                                 {{"OMPI_COMM_WORLD_SIZE", "8"}, {"OMPI_COMM_WORLD_RANK", "1"}})),
            "");
  for (const auto& [flag, value] : {std::pair{"--launcher", "slurm"}, {"--alone", ""}})
    EXPECT_EQ(contradiction(other_rank, flags_with({{flag, value}})), "") << flag;
}

TEST(LaunchEnvironment, SrunThatSpeaksPmiIsSlurm) {
  const auto flags = [](const Variables& variables) {
    return flags_of_launcher({}, environment_of(beside(kSlurmOfFour, variables)));
  };
  EXPECT_EQ(flags({{"PMI_SIZE", "4"}, {"PMI_RANK", "3"}}).size(), 3u);
  EXPECT_TRUE(flags({{"PMI_SIZE", "8"}, {"PMI_RANK", "3"}}).empty());
}

TEST(LaunchEnvironment, PodsAreCountedByFlags) {
  const Variables pod = {
      {"JOB_SERVICE", "mlp"}, {"JOB_NAME", "mlp"}, {"JOB_COMPLETION_INDEX", "1"}};
  const auto flags = [&](const FlagValues& values) {
    return flags_of_launcher(values, environment_of(pod));
  };
  EXPECT_EQ(flags(flags_with({{"--workers", "2"}}))[1].values[0], "worker:1");
  EXPECT_EQ(flags(flags_with({{"--ps", "1"}, {"--workers", "2"}}))[1].values[0], "worker:0");
  for (const FlagValues& few : {FlagValues(), flags_with({{"--ps", "1"}})})
    EXPECT_THAT(error_of(ErrorCode::kUsage, [&] { flags(few); }), HasSubstr("--workers"));
  // The pods of an indexed Job may be independent of each other.
  EXPECT_EQ(refusal_under({{"JOB_NAME", "mlp"}, {"JOB_COMPLETION_INDEX", "1"}}), "");
}

TEST(LaunchEnvironment, SaysHowTheLaunchersUsersGiveAKey) {
  const auto hint = [](const std::string& placed) {
    return key_hint(flags_with({{"--placed", placed}}));
  };
  EXPECT_THAT(hint("Slurm (SLURM_PROCID=3)"), HasSubstr("home folders"));
  EXPECT_THAT(hint("Kubernetes (JOB_NAME=a)"), HasSubstr("Secret"));
  EXPECT_EQ(key_hint({}), "");
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
