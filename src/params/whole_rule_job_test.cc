// Tests a rule that asks for its whole variable: a ps computes the same as one process, whatever
// the form in which a contribution arrives.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/testing/custom_rules.h"
#include "params/local/local_store.h"
#include "params/testing/job_fixture.h"
#include "params/worker/ps_store.h"

namespace paceline {
namespace {

struct Way {
  std::string name;
  bool clipped, shared;
};

std::vector<VariableSpec> matrix_and_offsets() {
  return {{.name = "w", .shape = {150, 40}, .rule = muon(), .average_decay = 0.9f},
          {.name = "b", .shape = {40}, .rule = Sgd{.learning_rate = 0.1f}}};
}

class WholeRuleJob : public JobFixture, public ::testing::WithParamInterface<Way> {};
INSTANTIATE_TEST_SUITE_P(Ways, WholeRuleJob,
                         ::testing::Values(Way{"Frames", false, false}, Way{"Shared", false, true},
                                           Way{"ClippedFrames", true, false},
                                           Way{"ClippedShared", true, true}),
                         [](const auto& test) { return test.param.name; });

TEST_P(WholeRuleJob, AppliesItAsOneProcessDoes) {
  const auto variables = matrix_and_offsets();
  make_spec(2, 1);
  start_all_ps();
  PsStoreOptions options = store_options(0);
  options.share_memory = GetParam().shared;
  const auto remote = PsStore::join(options, variables);
  const auto local = make_local_store(variables, nullptr, nullptr);
  remote->write(initial_states(variables), 0);
  local->write(initial_states(variables), 0);
  const auto before = everything(*local);
  StepDriver far(*remote, GetParam().clipped), near(*local, GetParam().clipped);
  for (int step = 1; step <= 10; ++step) {
    EXPECT_EQ(far.step(), step);
    EXPECT_EQ(near.step(), step);
  }
  const auto there = everything(*remote), here = everything(*local);
  ASSERT_EQ(there.size(), here.size());
  EXPECT_NE(here, before);
  for (std::size_t array = 0; array < here.size(); ++array) {
    ASSERT_EQ(there[array].size(), here[array].size());
    for (std::size_t i = 0; i < here[array].size(); ++i) {
      ASSERT_NEAR(there[array][i], here[array][i], 1e-4 + 1e-4 * std::abs(here[array][i]));
    }
  }
  remote->goodbye();
  for (auto& ps : ps_tasks_) EXPECT_EQ(ps.get().applied, 10);
}

}  // namespace
}  // namespace paceline
