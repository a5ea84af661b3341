// Tests towers as users meet them: --towers on the command line, alone and with parameter servers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>

#include "tests/process.h"

namespace paceline::testing {
namespace {

using nlohmann::json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

// Simulated devices that compute, so that there can be more of them than cores.
const Words kSim = {"--device", "sim",           "--sim-step-ms", "0.1", "--sim-copy-gbps",
                    "100",      "--sim-compute", "--threads",     "1"};

class TowersOfACommand : public ::testing::Test {
 protected:
  json train(const Words& words) {
    const Finished run =
        run_paceline(join({{"train"}, words, {"--report", folder_.path("report")}}));
    EXPECT_EQ(run.status, 0) << run.output;
    output_ = run.output;
    std::ifstream file(folder_.path("report"));
    return json::parse(file);
  }
  std::string made(const std::string& what, const Words& more) {
    const Finished made = run_paceline(join({{"data", what, "--out", folder_.path(what)}, more}));
    EXPECT_EQ(made.status, 0) << made.output;
    return folder_.path(what);
  }
  TemporaryFolder folder_;
  std::string output_;
};

// The model has sparse rows, its gradient is clipped, and each tower has its own LSTM state.
TEST_F(TowersOfACommand, TwoOfTenRowsReadAndLearnWhatOneDeviceDoesWithTwenty) {
  const Words ptb = join({{"ptb", "--data", made("corpus", {"--words", "200000"}), "--set",
                           "hidden=24", "--steps", "20"},
                          kSim});
  const json one = train(join({ptb, {"--batch", "20"}}));
  const json two = train(join({ptb, {"--batch", "10", "--towers", "2"}}));
  EXPECT_EQ(two["towers"], 2);
  for (const char* end : {"first", "last"}) {
    const double expected = one["perplexity"][end], got = two["perplexity"][end];
    EXPECT_NEAR(std::log(got), std::log(expected), 1e-5) << end;
  }
  EXPECT_EQ(train(join({ptb, {"--batch", "10", "--towers", "2"}}))["loss"], two["loss"])
      << "runs are bit-equal";
}

TEST_F(TowersOfACommand, WithParameterServersEachWorkerHasItsOwn) {
  const json report = train(join({{"mlp", "--hidden", "32", "--batch", "8", "--steps", "60", "--ps",
                                   "1", "--workers", "2", "--towers", "2"},
                                  kSim}));
  EXPECT_EQ(report["towers"], 2);
  EXPECT_GE(report["global_step"], 60);
  EXPECT_THAT(output_, ContainsRegex("worker:1 +127.* devices sim:2 to sim:3"));
}

TEST_F(TowersOfACommand, ResumeWithTheImagesAndLossesOfAnUnbrokenRun) {
  const Words cifar10 = join({{"cifar10", "--data", made("images", {"--count", "300"}), "--batch",
                               "10", "--towers", "3", "--set", "evaluate_every=0"},
                              kSim});
  const json whole = train(join({cifar10, {"--steps", "10"}}));
  const Words cut = join({cifar10, {"--out", folder_.path("out")}});
  train(join({cut, {"--steps", "4"}}));
  EXPECT_EQ(train(join({cut, {"--steps", "10", "--resume"}}))["loss"]["last"],
            whole["loss"]["last"]);
  EXPECT_THAT(output_, ContainsRegex("elapsed [0-9.]+ s, [0-9.]+ to [0-9.]+ s/step"));
}

TEST_F(TowersOfACommand, TooManyForTheMachineAreRefused) {
  const Finished refused = run_paceline({"train", "mlp", "--towers", "64", "--threads", "1"});
  EXPECT_EQ(refused.status, 2) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("--towers 64: "));
}

}  // namespace
}  // namespace paceline::testing
