// Tests that the command trains: alone, launched as a cluster, and task by task.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <fstream>
#include <sstream>

#include "tests/process.h"

namespace paceline::testing {
namespace {

using nlohmann::json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

json read_json(const std::string& path) {
  std::ifstream file(path);
  return json::parse(file);
}

const std::vector<std::string> kSmallMlp = {"train",   "mlp", "--hidden",  "48",
                                            "--batch", "16",  "--threads", "1"};

std::vector<std::string> with(std::vector<std::string> words,
                              const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

class Training : public ::testing::Test {
 protected:
  json train(const std::string& name, const std::vector<std::string>& words) {
    const Finished run = run_paceline(with(words, {"--report", folder_.path(name)}));
    EXPECT_EQ(run.status, 0) << run.output;
    output_ = run.output;
    return read_json(folder_.path(name));
  }
  /// Makes a corpus that is just large enough, and returns its folder.
  std::string corpus() {
    const Finished made =
        run_paceline({"data", "corpus", "--out", folder_.path("corpus"), "--words", "200000"});
    EXPECT_EQ(made.status, 0) << made.output;
    return folder_.path("corpus");
  }
  TemporaryFolder folder_;
  std::string output_;
};

std::vector<const json*> tasks_of_job(const json& report, const std::string& job) {
  std::vector<const json*> tasks;
  for (const json& task : report["tasks"]) {
    if (task["task"].get<std::string>().starts_with(job)) tasks.push_back(&task);
  }
  return tasks;
}

TEST_F(Training, OneWorkerOnAPsComputesTheLossesOfOneProcessBitForBitForMlp) {
  const auto words = with(kSmallMlp, {"--steps", "200"});
  const json alone = train("alone", words);
  for (const char* link : {"shm", "tcp"}) {
    const json cluster =
        train("cluster", with(words, {"--ps", "1", "--workers", "1", "--link", link}));
    EXPECT_EQ(alone["loss"], cluster["loss"]) << link;
  }
  EXPECT_LT(alone["loss"]["last"], alone["loss"]["first"]);
}

TEST_F(Training, OneWorkerOnTwoPsComputesTheLossesOfOneProcessBitForBitForPtb) {
  const std::vector<std::string> words = {"train",  "ptb",     "--size", "test",      "--data",
                                          corpus(), "--steps", "200",    "--threads", "1"};
  const json alone = train("alone", words);
  for (const char* ps : {"1", "2"}) {
    for (const char* link : {"shm", "tcp"}) {
      const json cluster =
          train("cluster", with(words, {"--ps", ps, "--workers", "1", "--link", link}));
      EXPECT_EQ(alone["loss"], cluster["loss"]) << ps << " ps over " << link;
    }
  }
}

// The losses differ from those of float32 by at most 1%, and are the same in every run. Between
// tasks that share memory, nothing is rounded.
TEST_F(Training, RoundedOnTheWireLossesStayCloseToFloat32) {
  const std::vector<std::string> ptb = {"train",  "ptb",     "--size", "test",      "--data",
                                        corpus(), "--steps", "200",    "--threads", "1"};
  for (const auto& words : {with(kSmallMlp, {"--steps", "200"}), ptb}) {
    const auto cluster = with(words, {"--ps", "1", "--workers", "1"});
    const json exact = train("exact", with(cluster, {"--link", "tcp"}));
    for (const Words& wire : {Words{"bfloat16"}, Words{"bfloat16", "--error-feedback"},
                              Words{"float16"}, Words{"int8"}}) {
      const auto rounded = join({cluster, {"--wire"}, wire});
      const json loss = train("rounded", with(rounded, {"--link", "tcp"}))["loss"];
      const double last = exact["loss"]["last"];
      EXPECT_NEAR(loss["last"].get<double>(), last, 0.01 * last);
      EXPECT_NE(loss["last"], exact["loss"]["last"]);
      EXPECT_EQ(train("again", with(rounded, {"--link", "tcp"}))["loss"], loss);
      EXPECT_EQ(train("shared", rounded)["loss"], exact["loss"]);
      EXPECT_THAT(output_, HasSubstr("--wire " + wire[0] + " rounds nothing"));
    }
  }
}

TEST_F(Training, TwoRunsWithOneThreadAreTheSameAndAnotherSeedIsNot) {
  const auto words = with(kSmallMlp, {"--steps", "30"});
  const json first = train("a", words);
  EXPECT_EQ(first["loss"], train("b", words)["loss"]);
  EXPECT_NE(first["loss"], train("c", with(words, {"--seed", "2"}))["loss"]);
}

TEST_F(Training, OneWorkerMakesExactlyTheGlobalStepsAndManyOvershootByLessThanTheirNumber) {
  const json one = train("one", with(kSmallMlp, {"--steps", "50", "--ps", "1", "--workers", "1"}));
  EXPECT_EQ((*tasks_of_job(one, "worker")[0])["steps"], 50);
  EXPECT_EQ((*tasks_of_job(one, "ps")[0])["steps"], 50);

  const json three =
      train("three", with(kSmallMlp, {"--steps", "60", "--ps", "2", "--workers", "3"}));
  int steps = 0;
  for (const json* worker : tasks_of_job(three, "worker")) steps += (*worker)["steps"].get<int>();
  EXPECT_GE(steps, 60);
  EXPECT_LE(steps, 62);
  EXPECT_THAT(output_, HasSubstr(" global steps ("));
  EXPECT_THAT(output_, ::testing::Not(HasSubstr(" here)")));  // the launcher counts them all
  EXPECT_EQ(tasks_of_job(three, "ps").size(), 2u);
}

TEST_F(Training, MoreWorkersThanCoresAllTakePart) {
  train_until_all_have_stepped(with(kSmallMlp, {"--ps", "1", "--workers", "8"}), 8);
}

TEST_F(Training, AReportHasWorkersFirstAndSharesThatSumToOne) {
  const json report =
      train("report", with(kSmallMlp, {"--seconds", "0.5", "--ps", "1", "--workers", "2"}));
  EXPECT_EQ(report["model"], "mlp");
  ASSERT_EQ(report["tasks"].size(), 3u);
  EXPECT_EQ(report["tasks"][0]["task"], "worker:0");
  EXPECT_EQ(report["tasks"][2]["task"], "ps:0");
  for (const json& task : report["tasks"]) {
    double sum = 0;
    for (const auto& [name, share] : task["share"].items()) sum += share.get<double>();
    EXPECT_NEAR(sum, 1, 1e-6) << task.dump();
  }
  EXPECT_GT(report["total"]["steps_per_s"].get<double>(), 0);
}

TEST_F(Training, FewerThanElevenStepsAreNotTimedAndTheReportSaysNull) {
  const json report = train("short", with(kSmallMlp, {"--steps", "5"}));
  EXPECT_TRUE(report["tasks"][0]["steps_per_s"].is_null());
  EXPECT_EQ(report["tasks"][0]["steps"], 5);
}

TEST_F(Training, ARunSaysHowNearItCameToTheRoofOfTheMachine) {
  const json alone = train("alone", with(kSmallMlp, {"--steps", "60"}));
  EXPECT_GT(alone["bound"]["steps_per_s"].get<double>(), 0);
  EXPECT_GT(alone["bound"]["gflops_per_s"].get<double>(), 0);
  EXPECT_GT(alone["bound"]["gbytes_per_s"].get<double>(), 0);
  EXPECT_GT(alone["bound"]["rule_gbytes_per_s"].get<double>(), 0);
  EXPECT_THAT(output_, ContainsRegex("GB/s would allow [0-9.,]+ steps/s"));
  // The run has so many steps that each worker makes some measured ones, even if it begins late.
  const json two =
      train("two", with(kSmallMlp, {"--steps", "2000", "--ps", "1", "--workers", "2"}));
  ASSERT_TRUE(two.contains("bound")) << output_;
  EXPECT_GT(two["bound"]["steps_per_s"].get<double>(), 0);
}

TEST_F(Training, ASimulatedDeviceHasNoRoof) {
  const json sim =
      train("sim", with(kSmallMlp, {"--steps", "15", "--device", "sim", "--sim-step-ms", "1"}));
  EXPECT_FALSE(sim.contains("bound"));
  EXPECT_THAT(output_, Not(HasSubstr("GFLOP/s")));
}

TEST_F(Training, TasksStartInAnyOrder) {
  const std::string ps = free_address(), first = free_address(), second = free_address();
  const auto task = [&](const std::string& name) {
    return paceline_words(
        with(kSmallMlp, {"--steps", "40", "--cluster",
                         "ps=" + ps + ";worker=" + first + "," + second, "--task", name}));
  };
  Process late_worker(task("worker:1"));
  ASSERT_TRUE(late_worker.wait_for("ps:0", std::chrono::seconds(30))) << late_worker.output();
  Process chief(task("worker:0"));
  ASSERT_TRUE(chief.wait_for("ps:0", std::chrono::seconds(30))) << chief.output();
  Process server(task("ps:0"));
  EXPECT_EQ(chief.wait_exit(std::chrono::seconds(60)), 0) << chief.output();
  EXPECT_EQ(late_worker.wait_exit(std::chrono::seconds(60)), 0) << late_worker.output();
  EXPECT_EQ(server.wait_exit(std::chrono::seconds(60)), 0) << server.output();
}

TEST_F(Training, OneTaskPerProcessMayBeSaidWithHostListsAndUnderscores) {
  const std::string ps = free_address(), worker = free_address();
  const auto task = [&](const std::string& job) {
    return paceline_words(with(kSmallMlp, {"--steps", "20", "--ps_hosts", ps, "--worker_hosts",
                                           worker, "--job_name", job, "--task_index", "0"}));
  };
  Process server(task("ps"));
  Process chief(task("worker"));
  EXPECT_EQ(chief.wait_exit(std::chrono::seconds(60)), 0) << chief.output();
  EXPECT_EQ(server.wait_exit(std::chrono::seconds(60)), 0) << server.output();
  EXPECT_THAT(chief.output(), HasSubstr("\n20 global steps (20 here)\n"));
}

TEST_F(Training, EveryTaskThatIsStartedByHandShowsThePlacementWhenAsked) {
  const std::string ps = free_address(), first = free_address(), second = free_address();
  const auto task = [&](const std::string& name) {
    return paceline_words(
        with(kSmallMlp, {"--steps", "20", "--show-placement", "--cluster",
                         "ps=" + ps + ";worker=" + first + "," + second, "--task", name}));
  };
  Process server(task("ps:0")), other(task("worker:1"));
  ASSERT_TRUE(server.wait_for("worker:1 joined", std::chrono::seconds(60))) << server.output();
  Process chief(task("worker:0"));
  for (Process* process : {&server, &chief, &other}) {
    EXPECT_EQ(process->wait_exit(std::chrono::seconds(60)), 0) << process->output();
    EXPECT_THAT(process->output(), HasSubstr("layer1/b rows 0-48 of 48: 192 bytes on ps:0\n"));
  }
}

TEST_F(Training, TheChiefShowsThePlacementOnce) {
  const Finished run = run_paceline(with(
      kSmallMlp, {"--steps", "3", "--ps", "2", "--workers", "2", "--show-placement", "--quiet"}));
  EXPECT_EQ(run.status, 0) << run.output;
  std::istringstream lines(run.output);
  int pieces = 0;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_THAT(line, HasSubstr("worker:0 | layer")) << run.output;
    EXPECT_THAT(line, HasSubstr(" bytes on ps:"));
    ++pieces;
  }
  EXPECT_GE(pieces, 6);  // one for each variable at least
}

TEST_F(Training, PtbReportsItsPerplexityAtBothEndsOfARunThatEndsInAnEpoch) {
  const json report =
      train("ends", {"train", "ptb", "--size", "test", "--data", corpus(), "--steps", "40"});
  const json& perplexity = report["perplexity"];
  EXPECT_GT(perplexity["first"], perplexity["last"]);
  EXPECT_GT(perplexity["first"], perplexity["train"]);
  EXPECT_TRUE(perplexity["valid"].is_null());
  EXPECT_TRUE(perplexity["test"].is_null());
}

TEST_F(Training, PtbReportsHowFarItCameWhenItIsInterruptedInItsFirstEpoch) {
  Process run(paceline_words({"train", "ptb", "--data", corpus(), "--set", "hidden=50", "--threads",
                              "1", "--report", folder_.path("cut")}));
  ASSERT_TRUE(run.wait_for(" wps", std::chrono::seconds(60))) << run.output();
  run.signal(SIGINT);
  EXPECT_EQ(run.wait_exit(std::chrono::seconds(20)), 130) << run.output();
  const json report = read_json(folder_.path("cut"));
  EXPECT_THAT(std::string(report["error"]), HasSubstr("worker:0 was interrupted at step "));
  EXPECT_TRUE(report["loss"]["last"].is_number());
  for (const char* key : {"first", "last", "train"}) {
    EXPECT_TRUE(report["perplexity"][key].is_number()) << key;
  }
  EXPECT_TRUE(report["perplexity"]["valid"].is_null());
  EXPECT_TRUE(report["perplexity"]["test"].is_null());
}

// A test of the perplexity feeds one word per step, and so would take the simulated device's step
// time for each word.
TEST_F(Training, PtbMakesNoTestOnADeviceThatOnlyTakesTheTime) {
  train("sim", {"train", "ptb", "--size", "test", "--data", corpus(), "--epochs", "1", "--set",
                "unroll=10", "--batch", "100", "--device", "sim", "--sim-step-ms", "1"});
  EXPECT_THAT(output_, HasSubstr("Epoch: 1 Valid Perplexity: "));
  EXPECT_THAT(output_, ::testing::Not(HasSubstr("Test Perplexity: ")));
}

TEST_F(Training, PtbPrintsTheReportsLinesAndTheChiefTests) {
  const json report =
      train("epochs", {"train", "ptb", "--size", "test", "--data", corpus(), "--epochs", "1",
                       "--set", "unroll=10", "--batch", "100", "--ps", "1", "--workers", "2"});
  for (const char* line : {"Epoch: 1 Learning rate: 1.000\n", "Epoch: 1 Train Perplexity: ",
                           "Epoch: 1 Valid Perplexity: ", "Epoch: 1 Time: "}) {
    EXPECT_THAT(output_, HasSubstr(std::string("worker:0 | ") + line));
    EXPECT_THAT(output_, HasSubstr(std::string("worker:1 | ") + line));
  }
  EXPECT_THAT(output_, HasSubstr("worker:0 | Test Perplexity: "));
  EXPECT_THAT(output_, ::testing::Not(HasSubstr("worker:1 | Test Perplexity: ")));
  EXPECT_THAT(output_, ::testing::ContainsRegex("0\\.[0-9]{3} perplexity: [0-9]+\\.[0-9] speed: "
                                                "[0-9]+ wps"));
  for (const char* key : {"first", "last", "train", "valid", "test"}) {
    EXPECT_TRUE(report["perplexity"][key].is_number()) << key;
  }
}

TEST_F(Training, FetchTimesOneShapeForTheStepsOrTheSecondsAskedFor) {
  const std::vector<std::string> words = {"train",   "fetch", "--features", "8",
                                          "--batch", "4",     "--hidden",   "16"};
  const json steps = train("steps", with(words, {"--steps", "20", "--ps", "1", "--workers", "1"}));
  ASSERT_EQ(steps["fetch"].size(), 1u);
  EXPECT_EQ(steps["fetch"][0]["shape"], "8,4,16");
  EXPECT_GT(steps["fetch"][0]["remote_us"].get<double>(), 0);
  EXPECT_THAT(output_, HasSubstr(" steps/s: input"));  // and no second unit
  const json seconds = train("seconds", with(words, {"--seconds", "0.05"}));
  EXPECT_GT(seconds["fetch"][0]["local_us"].get<double>(), 0);
}

TEST_F(Training, ASimulatedDeviceTakesItsTime) {
  const json report =
      train("sim", with(kSmallMlp, {"--steps", "40", "--device", "sim", "--sim-step-ms", "5"}));
  // The test looks at p99, since the median would be too low: after a sleep that took too long,
  // steps are shorter until the time is made up.
  EXPECT_GE(report["tasks"][0]["step_ms"]["p99"].get<double>(), 5.0);
}

TEST_F(Training, AnInterruptEndsTheRunWith130) {
  Process run(paceline_words(with(kSmallMlp, {"--ps", "1", "--workers", "2"})));
  ASSERT_TRUE(run.wait_for("Step: ", std::chrono::seconds(60))) << run.output();
  run.signal(SIGINT);
  EXPECT_EQ(run.wait_exit(std::chrono::seconds(20)), 130) << run.output();
}

}  // namespace
}  // namespace paceline::testing
