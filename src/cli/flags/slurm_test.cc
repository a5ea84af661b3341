#include "cli/flags/slurm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/testing/error_of.h"

namespace paceline {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

Environment of(const Variables& variables) {
  return [&variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

/// A step of three nodes with 2, 2 and 1 tasks; this process is the fourth.
const Variables kStep = {{"SLURM_JOB_ID", "1234"},
                         {"SLURM_STEP_ID", "0"},
                         {"SLURM_STEP_NUM_TASKS", "5"},
                         {"SLURM_STEP_NODELIST", "n[1-2],big"},
                         {"SLURM_STEP_TASKS_PER_NODE", "2(x2),1"},
                         {"SLURM_PROCID", "3"},
                         {"SLURM_NODEID", "1"},
                         {"SLURM_LOCALID", "1"}};

Variables with(Variables variables, const Variables& others) {
  for (const auto& [name, text] : others) variables[name] = text;
  return variables;
}

TEST(SlurmNodes, OfAllForms) {
  const auto nodes = [](const char* list) { return slurm_nodes("LIST", list); };
  EXPECT_THAT(nodes("one"), ElementsAre("one"));
  EXPECT_THAT(nodes("a,b-2,c.example"), ElementsAre("a", "b-2", "c.example"));
  EXPECT_THAT(nodes("n[1-3,7]"), ElementsAre("n1", "n2", "n3", "n7"));
  EXPECT_THAT(nodes("n[08-11],x"), ElementsAre("n08", "n09", "n10", "n11", "x"));
  EXPECT_THAT(nodes("r[1-2]n[0-1]"), ElementsAre("r1n0", "r1n1", "r2n0", "r2n1"));
  EXPECT_THAT(nodes("n[1]-ib"), ElementsAre("n1-ib"));
  for (const char* const bad :
       {"", "a,", "n[1-", "n1]", "n[a-b]", "n[3-1]", "n[]", "n[1-999999999]"})
    EXPECT_THAT(error_of(ErrorCode::kUsage, [&] { nodes(bad); }),
                HasSubstr("Slurm: LIST=" + std::string(bad)));
}

TEST(SlurmCounts, OfAllForms) {
  const auto counts = [](const char* list) { return slurm_counts("LIST", list); };
  EXPECT_THAT(counts("4"), ElementsAre(4));
  EXPECT_THAT(counts("2(x3),1"), ElementsAre(2, 2, 2, 1));
  for (const char* const bad : {"", "x", "0", "2(x", "2(3)", "2(x3),", "-1", "2(xa)"})
    EXPECT_THAT(error_of(ErrorCode::kUsage, [&] { counts(bad); }), HasSubstr("LIST="));
}

TEST(Slurm, GivesEachTaskItsPlace) {
  const auto flags = flags_of_slurm(of(kStep), 0);
  ASSERT_EQ(flags.size(), 3u);
  const int port = 16384 + 1234 * 31 % (16384 / 2) * 2;
  const std::string first = ":" + std::to_string(port), second = ":" + std::to_string(port + 1);
  EXPECT_EQ(flags[0].values[0],
            "worker=n1" + first + ",n1" + second + ",n2" + first + ",n2" + second + ",big" + first);
  EXPECT_EQ(flags[1].values[0], "worker:3");
  EXPECT_EQ(
      flags_of_slurm(of(kStep), 2)[0].values[0],
      "ps=n1" + first + ",n1" + second + ";worker=n2" + first + ",n2" + second + ",big" + first);
  EXPECT_EQ(flags_of_slurm(of(kStep), 2)[1].values[0], "worker:1");
  EXPECT_EQ(flags_of_slurm(of(kStep), 4)[1].values[0], "ps:3");
}

TEST(Slurm, GoesRoundTheNodesWhereTasksDo) {
  const Variables cyclic = with(kStep, {{"SLURM_DISTRIBUTION", "cyclic:block"},
                                        {"SLURM_PROCID", "2"},
                                        {"SLURM_NODEID", "2"},
                                        {"SLURM_LOCALID", "0"}});
  const std::string spec = flags_of_slurm(of(cyclic), 0)[0].values[0];
  EXPECT_THAT(spec, testing::MatchesRegex("worker=n1:.*,n2:.*,big:.*,n1:.*,n2:.*"));
}

TEST(Slurm, GivesOtherStepsAndJobsOtherPorts) {
  const auto spec = [](const char* job, const char* step) {
    const Variables variables = with(kStep, {{"SLURM_JOB_ID", job}, {"SLURM_STEP_ID", step}});
    return flags_of_slurm(of(variables), 0)[0].values[0];
  };
  EXPECT_NE(spec("1", "0"), spec("2", "0"));
  EXPECT_NE(spec("1", "0"), spec("1", "1"));
  EXPECT_EQ(spec("1", "0"), spec("1", "0")) << "a requeued job comes back to its addresses";
}

TEST(Slurm, NamesWhatIsMissingOrContradictsItself) {
  const auto refusal = [](const Variables& variables) {
    return error_of(ErrorCode::kUsage, [&] { flags_of_slurm(of(variables), 0); });
  };
  for (const char* const variable :
       {"SLURM_STEP_NODELIST", "SLURM_STEP_TASKS_PER_NODE", "SLURM_PROCID", "SLURM_JOB_ID"}) {
    Variables half = kStep;
    half.erase(variable);
    EXPECT_THAT(refusal(half), AllOf(HasSubstr(variable), HasSubstr("srun")));
  }
  EXPECT_THAT(
      refusal(with(kStep, {{"SLURM_STEP_NUM_TASKS", "6"}})),
      AllOf(HasSubstr("SLURM_STEP_NUM_TASKS=6"), HasSubstr("2(x2),1"), HasSubstr("5 tasks")));
  EXPECT_THAT(refusal(with(kStep, {{"SLURM_STEP_NODELIST", "n[1-4]"}})),
              AllOf(HasSubstr("n[1-4] names 4 nodes"), HasSubstr("is for 3")));
  EXPECT_THAT(refusal(with(kStep, {{"SLURM_NODEID", "2"}})),
              AllOf(HasSubstr("SLURM_NODEID=2"), HasSubstr("SLURM_PROCID=3")));
  EXPECT_THAT(refusal(with(kStep, {{"SLURM_PROCID", "5"}})), HasSubstr("SLURM_PROCID=5"));
  EXPECT_THAT(refusal(with(kStep, {{"SLURM_HET_SIZE", "2"}})), HasSubstr("heterogeneous"));
  EXPECT_THAT(refusal(with(kStep, {{"SLURM_DISTRIBUTION", "plane=2"}})), HasSubstr("plane=2"));
}

}  // namespace
}  // namespace paceline
