#include "cli/flags/meeting_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/testing/error_of.h"
#include "cli/flags/launch_port.h"

namespace paceline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

/// Returns the variables with these changes; a change without a text removes its variable.
Variables changed(Variables variables, const Variables& changes) {
  for (const auto& [name, text] : changes) {
    variables[name] = text;
    if (text.empty()) variables.erase(name);
  }
  return variables;
}

std::optional<MeetingPlan> plan_under(const Variables& variables, const FlagValues& values = {}) {
  return meeting_plan(values, [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

std::string refused_plan(const Variables& variables, const FlagValues& values = {}) {
  return error_of(ErrorCode::kUsage, [&] { plan_under(variables, values); });
}

FlagValues ps_and_workers(const std::string& ps, const std::string& workers) {
  FlagValues values;
  if (!ps.empty()) values.add("--ps", ps);
  if (!workers.empty()) values.add("--workers", workers);
  return values;
}

const Variables kByHand = {
    {"RANK", "2"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "boss"}, {"MASTER_PORT", "29500"}};

// The variables that torchrun 2.15 --standalone --nproc-per-node 2 really set.
const Variables kTorchrun = {{"GROUP_RANK", "0"},
                             {"GROUP_WORLD_SIZE", "1"},
                             {"LOCAL_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "2"},
                             {"MASTER_ADDR", "localhost"},
                             {"MASTER_PORT", "35691"},
                             {"RANK", "1"},
                             {"ROLE_NAME", "default"},
                             {"TORCHELASTIC_MAX_RESTARTS", "0"},
                             {"TORCHELASTIC_RESTART_COUNT", "0"},
                             {"TORCHELASTIC_RUN_ID", "c109bcac-2d9d-49a0-a57c-0298f81c4d4a"},
                             {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                             {"WORLD_SIZE", "2"}};

TEST(MeetingPlan, FollowsFromVariablesThatWereSetByHand) {
  const MeetingPlan plan = plan_under(kByHand).value();
  EXPECT_EQ(plan.rank, 2);
  EXPECT_EQ(plan.size, 4);
  EXPECT_EQ(plan.ps, 0);
  EXPECT_EQ(plan.address, "boss:29500");
  EXPECT_FALSE(plan.one_host);
  EXPECT_FALSE(plan.any_may_hold);
  EXPECT_EQ(plan.seen, "RANK=2, WORLD_SIZE=4, MASTER_ADDR=boss, MASTER_PORT=29500");
  EXPECT_EQ(plan_under(changed(kByHand, {{"MASTER_ADDR", "fe80::1"}}))->address, "[fe80::1]:29500");
}

TEST(MeetingPlan, OfOneHostStaysOnTheLoopback) {
  for (const Variables& changes : {Variables{{"MASTER_ADDR", "localhost"}},
                                   Variables{{"LOCAL_WORLD_SIZE", "4"}, {"LOCAL_RANK", "2"}}}) {
    const MeetingPlan plan = plan_under(changed(kByHand, changes)).value();
    EXPECT_TRUE(plan.one_host);
    EXPECT_EQ(plan.address, "127.0.0.1:29500");
  }
}

TEST(MeetingPlan, UsesAnotherPortThanTheAgentOfTorchrun) {
  const MeetingPlan plan = plan_under(kTorchrun).value();
  const int port = launch_port("c109bcac-2d9d-49a0-a57c-0298f81c4d4a 35691");
  EXPECT_EQ(plan.address, "127.0.0.1:" + std::to_string(port));
  EXPECT_TRUE(plan.any_may_hold);
  EXPECT_THAT(plan.why_there, AllOf(HasSubstr("agent holds MASTER_PORT=35691"), HasSubstr("c109")));
  const MeetingPlan own =
      plan_under(changed(kTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "False"}})).value();
  EXPECT_EQ(own.address, "127.0.0.1:35691");
  EXPECT_FALSE(own.any_may_hold);
}

TEST(MeetingPlan, MakesTheFirstProcessesParameterServers) {
  EXPECT_EQ(plan_under(kByHand, ps_and_workers("1", ""))->ps, 1);
  EXPECT_EQ(plan_under(kByHand, ps_and_workers("1", "3"))->ps, 1);
  EXPECT_THAT(refused_plan(kByHand, ps_and_workers("1", "4")),
              AllOf(HasSubstr("--workers 4"), HasSubstr("WORLD_SIZE=4"), HasSubstr("3 workers")));
  EXPECT_THAT(refused_plan(kByHand, ps_and_workers("4", "")),
              AllOf(HasSubstr("--ps 4"), HasSubstr("WORLD_SIZE=4")));
}

TEST(MeetingPlan, IsThatOfPet) {
  const Variables pet = {{"PET_NNODES", "3"},
                         {"PET_NODE_RANK", "1"},
                         {"PET_NPROC_PER_NODE", "auto"},
                         {"PET_MASTER_ADDR", "job-node-0-0.job"},
                         {"PET_MASTER_PORT", "29400"}};
  const MeetingPlan plan = plan_under(pet).value();
  EXPECT_EQ(plan.address, "job-node-0-0.job:29400");
  EXPECT_EQ(plan.rank, 1);
  EXPECT_EQ(plan.size, 3);
  EXPECT_THAT(plan.key_hint, HasSubstr("Secret"));
  EXPECT_THAT(refused_plan(changed(pet, {{"PET_NNODES", "1:3"}})),
              HasSubstr("PET_NNODES=1:3: the number of nodes must be fixed, as in PET_NNODES=3"));
  EXPECT_THAT(refused_plan(changed(pet, {{"PET_NODE_RANK", ""}})),
              HasSubstr("PET_NODE_RANK is not set, and PET_NNODES=3, "));
}

// The variables that mpirun of Open MPI 4.1.4 and mpiexec of MPICH 4.0.2 really set.
TEST(MeetingPlan, OfMpiIsOnTheLoopbackOfOneHost) {
  const Variables open_mpi = {{"OMPI_COMM_WORLD_SIZE", "2"},       {"OMPI_COMM_WORLD_RANK", "1"},
                              {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}, {"PMIX_RANK", "1"},
                              {"PMIX_NAMESPACE", "315686913"},     {"PMIX_ID", "315686913.1"}};
  const MeetingPlan plan = plan_under(open_mpi).value();
  EXPECT_EQ(plan.rank, 1);
  EXPECT_EQ(plan.address, "127.0.0.1:" + std::to_string(launch_port("mpi 315686913")));
  EXPECT_NE(plan_under(changed(open_mpi, {{"PMIX_NAMESPACE", "2"}}))->address, plan.address);
  EXPECT_THAT(refused_plan(changed(open_mpi, {{"OMPI_COMM_WORLD_SIZE", "4"}})),
              AllOf(HasSubstr("2 of 4 processes are on this host"), HasSubstr("plug-in for MPI")));
  const Variables mpich = {
      {"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "2"}, {"MPI_LOCALRANKID", "0"}};
  EXPECT_THAT(plan_under(mpich)->address, testing::StartsWith("127.0.0.1:"));
  EXPECT_EQ(plan_under(mpich)->address, plan_under(mpich)->address);
  EXPECT_THAT(refused_plan(changed(mpich, {{"MPI_LOCALNRANKS", ""}})),
              HasSubstr("MPI_LOCALNRANKS is not set"));
  EXPECT_THAT(refused_plan(changed(mpich, {{"MPI_LOCALNRANKS", "3"}})),
              HasSubstr("MPI_LOCALNRANKS=3 and PMI_SIZE=2 contradict"));
}

TEST(MeetingPlan, IsNoneWhereNothingIsToBeFound) {
  EXPECT_FALSE(plan_under({}));
  EXPECT_FALSE(plan_under(changed(kByHand, {{"WORLD_SIZE", "1"}, {"RANK", "0"}})));
  for (const auto& [flag, value] : {std::pair{"--alone", ""},
                                    {"--launcher", "none"},
                                    {"--task", "worker:0"},
                                    {"--cluster", "worker=a:1"},
                                    {"--launched", ""},
                                    {"--dry-run", ""},
                                    {"--collectives", "mpi"}}) {
    FlagValues values;
    values.add(flag, value);
    EXPECT_FALSE(plan_under(kByHand, values)) << flag;
  }
}

TEST(MeetingPlan, NamesHalfOfTheVariablesAndContradictions) {
  for (const char* const missing : {"RANK", "MASTER_ADDR", "MASTER_PORT"}) {
    EXPECT_THAT(refused_plan(changed(kByHand, {{missing, ""}})),
                AllOf(HasSubstr(std::string("torchrun: ") + missing + " is not set, and "),
                      HasSubstr("WORLD_SIZE=4"), HasSubstr("--alone")));
  }
  EXPECT_THAT(refused_plan(changed(kByHand, {{"RANK", "4"}})),
              HasSubstr("RANK=4 and WORLD_SIZE=4 contradict each other"));
  EXPECT_THAT(refused_plan(changed(kByHand, {{"LOCAL_WORLD_SIZE", "5"}})),
              HasSubstr("LOCAL_WORLD_SIZE=5 and WORLD_SIZE=4 contradict each other"));
  EXPECT_THAT(refused_plan(changed(kByHand, {{"LOCAL_WORLD_SIZE", "2"}, {"LOCAL_RANK", "2"}})),
              HasSubstr("LOCAL_RANK=2 and LOCAL_WORLD_SIZE=2 contradict each other"));
  for (const auto& [name, text] : {std::pair{"RANK", "x"},
                                   {"RANK", "-1"},
                                   {"MASTER_PORT", "0"},
                                   {"MASTER_PORT", "70000"},
                                   {"MASTER_ADDR", "a b"},
                                   {"MASTER_ADDR", "a:1"},
                                   {"LOCAL_RANK", "1.5"}}) {
    EXPECT_THAT(refused_plan(changed(kByHand, {{name, text}})),
                HasSubstr(std::string(name) + "=" + text));
  }
}

}  // namespace
}  // namespace paceline
