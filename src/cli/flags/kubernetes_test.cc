#include "cli/flags/kubernetes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/testing/error_of.h"

namespace paceline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

std::vector<GivenFlag> pod_flags(const Variables& variables, const GivenTasks& tasks) {
  return flags_of_kubernetes(
      [&](const char* name) {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
      },
      tasks);
}

Variables pod_of(const std::string& job, const std::string& index) {
  return {{"JOB_SERVICE", "mlp"}, {"JOB_NAME", job}, {"JOB_COMPLETION_INDEX", index}};
}

TEST(Kubernetes, PodsOfOneJobFollowEachOther) {
  const auto flags = pod_flags(pod_of("mlp", "2"), {.ps = 0, .workers = 3});
  ASSERT_EQ(flags.size(), 4u);
  EXPECT_EQ(flags[0].values[0], "worker=mlp-0.mlp:2222,mlp-1.mlp:2222,mlp-2.mlp:2222");
  EXPECT_EQ(flags[1].values[0], "worker:2");
  EXPECT_EQ(flags[2].values[0], "Kubernetes (JOB_NAME=mlp, JOB_COMPLETION_INDEX=2)");
  EXPECT_EQ(flags[3].name, "--bind");
  const auto with_ps = pod_flags(pod_of("mlp", "2"), {.ps = 1, .workers = 2});
  EXPECT_EQ(with_ps[0].values[0], "ps=mlp-0.mlp:2222;worker=mlp-1.mlp:2222,mlp-2.mlp:2222");
  EXPECT_EQ(with_ps[1].values[0], "worker:1");
}

TEST(Kubernetes, GroupsOfAJobSetAreParameterServersAndWorkers) {
  const GivenTasks tasks{.ps = 1, .workers = 2};
  const std::string spec =
      "ps=mlp-ps-0-0.mlp:2222;worker=mlp-worker-0-0.mlp:2222,mlp-worker-0-1.mlp:2222";
  const auto ps = pod_flags(pod_of("mlp-ps-0", "0"), tasks);
  EXPECT_EQ(ps[0].values[0], spec);
  EXPECT_EQ(ps[1].values[0], "ps:0");
  const auto worker = pod_flags(pod_of("mlp-worker-0", "1"), tasks);
  EXPECT_EQ(worker[0].values[0], spec);
  EXPECT_EQ(worker[1].values[0], "worker:1");
  EXPECT_EQ(pod_flags(pod_of("mlp-worker-0", "1"), {.ps = 0, .workers = 2})[0].values[0],
            "worker=mlp-worker-0-0.mlp:2222,mlp-worker-0-1.mlp:2222");
}

TEST(Kubernetes, NamesWhatIsMissingOrContradictsTheFlags) {
  const auto refusal = [](const Variables& variables, const GivenTasks& tasks = {1, 2}) {
    return error_of(ErrorCode::kUsage, [&] { pod_flags(variables, tasks); });
  };
  for (const char* const missing : {"JOB_NAME", "JOB_COMPLETION_INDEX"}) {
    Variables half = pod_of("mlp", "0");
    half.erase(missing);
    EXPECT_THAT(refusal(half), AllOf(HasSubstr(missing), HasSubstr("JOB_SERVICE=mlp is set")));
  }
  EXPECT_THAT(refusal(pod_of("mlp", "3")),
              HasSubstr("JOB_COMPLETION_INDEX=3 contradict --ps 1 --workers 2, by which that Job "
                        "has 3 pods"));
  EXPECT_THAT(refusal(pod_of("mlp-ps-0", "1")), HasSubstr("has 1 pods"));
  EXPECT_THAT(refusal(pod_of("mlp-ps-0", "0"), {0, 2}), HasSubstr("has 0 pods"));
  for (const char* const index : {"x", "-1", "1.5"})
    EXPECT_THAT(refusal(pod_of("mlp", index)), HasSubstr("must be a whole number"));
  EXPECT_THAT(refusal(pod_of("m;p", "0")), HasSubstr("is no name"));
}

}  // namespace
}  // namespace paceline
