// Tests paceline predict, --predict, and the speed that a run predicts for itself.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/cores.h"
#include "base/temporary_folder.h"
#include "base/text_file.h"
#include "run/report/report.h"
#include "tests/process.h"

namespace paceline::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

const std::vector<std::string> kSmallJob = {"mlp", "--hidden",      "32", "--device",
                                            "sim", "--sim-step-ms", "20"};

/// Gives every command a roof, so that nothing is measured.
class PredictTest : public ::testing::Test {
 protected:
  PredictTest() : roof_(folder_.path() + "/roof.toml") {
    write_text_file("the roof", roof_, "[[host]]\ncores = 4\ngflops = 200\ngbytes_per_s = 50\n");
  }
  Finished run(std::vector<std::string> words, const std::vector<std::string>& more) {
    words.insert(words.end(), kSmallJob.begin(), kSmallJob.end());
    words.insert(words.end(), {"--roof", roof_});
    words.insert(words.end(), more.begin(), more.end());
    return run_paceline(words, std::chrono::seconds(60));
  }

  const TemporaryFolder folder_;
  const std::string roof_;
};

TEST_F(PredictTest, PrintsEveryWayAndTheCommandOfTheBest) {
  const Finished table = run({"predict"}, {});
  EXPECT_EQ(table.status, 0) << table.output;
  EXPECT_THAT(table.output,
              AllOf(HasSubstr("one process"), HasSubstr("allreduce, 4 workers"),
                    HasSubstr("sync, 2 ps + 8 workers"), HasSubstr("the devices compute"),
                    HasSubstr("The fastest: --ps"), HasSubstr("docs/strategies.md")));
}

TEST_F(PredictTest, WritesJson) {
  const std::string json = folder_.path() + "/ways.json";
  const Finished made = run({"predict"}, {"--ps", "1", "--workers", "2", "--json", json});
  EXPECT_EQ(made.status, 0) << made.output;
  std::ifstream file(json);
  const auto all = nlohmann::json::parse(file);
  EXPECT_EQ(all["model"], "mlp");
  EXPECT_GT(all["ways"].size(), 3u);
  EXPECT_GT(all["ways"][0]["steps_per_s"], all["ways"].back()["steps_per_s"]);
}

TEST_F(PredictTest, KnowsHostsFromAFile) {
  const std::string hosts = folder_.path() + "/hosts.toml";
  write_text_file("the hosts", hosts,
                  "[[host]]\ncount = 4\ncores = 8\ngbytes_per_s = 80\ndevices = 2\ngbps = 1\n");
  const Finished made = run({"predict"}, {"--hosts", hosts});
  EXPECT_EQ(made.status, 0) << made.output;
  EXPECT_THAT(made.output,
              AllOf(HasSubstr("host 0 to host 3, each"), HasSubstr("a link of 1 Gbit/s"),
                    HasSubstr("8 workers"), HasSubstr("bfloat16")));
  const Finished wrong = run({"predict"}, {"--hosts", folder_.path() + "/none.toml"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.output, HasSubstr("--hosts"));
}

// Without encryption, all ways are faster on hosts whose cores encrypt slowly.
TEST_F(PredictTest, CountsWhatEncryptionTakesBetweenHosts) {
  const std::string hosts = folder_.path("hosts.toml");
  write_text_file(
      "the hosts", hosts,
      "[[host]]\ncount = 3\ncores = 2\ngbytes_per_s = 80\ncipher_gbytes_per_s = 0.01\n");
  const auto steps_per_s = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"--hosts", hosts, "--json", folder_.path("ways.json")};
    words.insert(words.end(), more.begin(), more.end());
    const Finished made = run({"predict"}, words);
    EXPECT_EQ(made.status, 0) << made.output;
    std::ifstream file(folder_.path("ways.json"));
    const auto all = nlohmann::json::parse(file);
    double sum = 0;
    for (const auto& way : all["ways"]) sum += way["steps_per_s"].get<double>();
    return sum;
  };
  EXPECT_GT(steps_per_s({"--insecure"}), 1.05 * steps_per_s({}));
}

/// Runs `paceline predict` for a small model on this machine's cores, with its own cache.
class PredictTrialTest : public PredictTest {
 protected:
  PredictTrialTest() { setenv("XDG_CACHE_HOME", folder_.path("cache").c_str(), 1); }
  ~PredictTrialTest() override { unsetenv("XDG_CACHE_HOME"); }

  Finished predict(const std::vector<std::string>& more) const {
    std::vector<std::string> words = {"predict", "mlp", "--hidden", "32", "--roof", roof_};
    words.insert(words.end(), more.begin(), more.end());
    return run_paceline(words, std::chrono::seconds(60));
  }
  std::string file_of_paces() const {
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path("cache/paceline"))) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("pace-") && name.ends_with(".json")) return entry.path();
    }
    return "no file of paces";
  }
};

// On hosts that multiply faster, only the part of the measured time that FLOPs explain shrinks.
TEST_F(PredictTrialTest, ScalesWhatFlopsExplainToOtherHosts) {
  const auto predicted_ms = [&](int gflops, const std::string& how) {
    const std::string hosts = folder_.path("hosts.toml");
    write_text_file("the hosts", hosts,
                    fmt::format("[[host]]\ncores = 4\ngflops = {}\ngbps = 1\n", gflops));
    const std::string text = predict({"--hosts", hosts, "--no-trial"}).output;
    EXPECT_THAT(text, HasSubstr(how));
    const std::string before = "The kernels of a step take ";
    return std::stod(text.substr(text.find(before) + before.size()));
  };
  const double of_costs = predicted_ms(200, "nothing was measured");
  predict({});
  // Now the file says that a step took twice the time which follows from its costs.
  const std::string path = file_of_paces();
  nlohmann::json all = nlohmann::json::parse(std::ifstream(path));
  const std::string any = all["paces"].begin().key();
  all["paces"] = {
      {any.substr(0, any.rfind(' ')) + " 4", {{"seconds", 2e-3 * of_costs}, {"others_share", 0}}}};
  write_text_file("the paces", path, all.dump());
  EXPECT_NEAR(predicted_ms(200, "measured in an earlier run"), 2 * of_costs, 0.02 * of_costs);
  EXPECT_NEAR(predicted_ms(2000, "measured in an earlier run"), 1.1 * of_costs, 0.02 * of_costs);
}

TEST_F(PredictTrialTest, StepsAreTimedFirstAndNoted) {
  const Finished first = predict({});
  EXPECT_EQ(first.status, 0) << first.output;
  EXPECT_THAT(first.output, ContainsRegex("\\(measured in [0-9,]+ steps? just now"));
  const auto noted = nlohmann::json::parse(std::ifstream(file_of_paces()))["paces"];
  EXPECT_EQ(noted.size(), usable_cores() > 1 ? 2u : 1u) << noted;
  for (const auto& pace : noted) EXPECT_GT(pace["seconds"].get<double>(), 0);
  EXPECT_THAT(predict({"--no-trial"}).output, HasSubstr("measured in an earlier run"));
}

TEST_F(PredictTrialTest, WorkersOfOneMachineTakeTheTimeOfStepsThatRanAtOnce) {
  predict({});
  const std::string path = file_of_paces();
  nlohmann::json all = nlohmann::json::parse(std::ifstream(path));
  if (usable_cores() > 1) {
    std::vector<std::string> timed;
    for (const auto& [name, pace] : all["paces"].items()) {
      timed.push_back(name.substr(name.rfind(' ') + 1));
    }
    EXPECT_THAT(timed, Contains(fmt::format("1x{}", usable_cores())));
  }
  const std::string any = all["paces"].begin().key(), key = any.substr(0, any.rfind(' '));
  const std::string hosts = folder_.path("hosts.toml"), json = folder_.path("ways.json");
  write_text_file("the hosts", hosts, "[[host]]\ncores = 2\ndevices = 2\n");
  const auto steps_of_two = [&](double seconds_at_once) {
    const auto pace = [](double seconds) {
      return nlohmann::json{{"seconds", seconds}, {"others_share", 0}};
    };
    all["paces"] = {{key + " 1", pace(0.01)}, {key + " 1x2", pace(seconds_at_once)}};
    write_text_file("the paces", path, all.dump());
    const Finished made = predict({"--hosts", hosts, "--no-trial", "--json", json, "--ps", "1",
                                   "--workers", "2", "--strategy", "async"});
    EXPECT_EQ(made.status, 0) << made.output;
    const auto ways = nlohmann::json::parse(std::ifstream(json));
    for (const auto& way : ways["ways"]) {
      if (way["workers"] == 2) return way["steps_per_s"].get<double>();
    }
    ADD_FAILURE() << made.output;
    return 0.0;
  };
  EXPECT_NEAR(steps_of_two(0.01) / steps_of_two(0.03), 3, 0.1);
}

TEST_F(PredictTrialTest, WithoutATrialTheIntervalIsWideAndTheLineSaysSo) {
  const std::string json = folder_.path("ways.json");
  const Finished made = predict({"--no-trial", "--json", json});
  EXPECT_EQ(made.status, 0) << made.output;
  EXPECT_THAT(made.output, HasSubstr("nothing was measured: no step of it was timed here"));
  const auto all = nlohmann::json::parse(std::ifstream(json));
  for (const auto& way : all["ways"]) {
    EXPECT_FALSE(way["measured"].get<bool>());
    EXPECT_LT(way["low"].get<double>(), 0.07 * way["steps_per_s"].get<double>());
  }
}

TEST_F(PredictTrialTest, AStepThatDoesNotFitIsNotMade) {
  const Finished made =
      run_paceline({"predict", "mlp", "--hidden", "32", "--batch", "2000000000", "--roof", roof_,
                    "--ps", "1", "--workers", "1", "--strategy", "async"},
                   std::chrono::seconds(60));
  EXPECT_EQ(made.status, 0) << made.output;
  EXPECT_THAT(made.output, ContainsRegex("nothing was measured: .*this machine has"));
}

TEST_F(PredictTrialTest, ARunWhoseStepsWereNeverTimedSaysSo) {
  const Finished made = run_paceline({"train", "mlp", "--hidden", "32", "--roof", roof_, "--ps",
                                      "1", "--workers", "1", "--steps", "5"},
                                     std::chrono::seconds(60));
  EXPECT_EQ(made.status, 0) << made.output;
  EXPECT_THAT(made.output, HasSubstr("; nothing was measured), "));
}

TEST(PredictLearners, PrintsTheShareOfTheirTimeByStrategy) {
  const Finished table = run_paceline({"predict", "--step-ms", "100", "--learners", "50",
                                       "--mtbf-hours", "0.05", "--restart-s", "5"},
                                      std::chrono::seconds(60));
  EXPECT_EQ(table.status, 0) << table.output;
  EXPECT_THAT(table.output,
              AllOf(ContainsRegex("\nasync +[0-9]+"), ContainsRegex("\nsync of 48 "),
                    ContainsRegex("\nlocal_sgd, H = 20, no rounds "), HasSubstr("50 learners.")));
}

TEST(PredictLearners, AFlagAboutThemAloneIsAnError) {
  const Finished alone =
      run_paceline({"predict", "--parameters", "1e6", "--step-ms", "100", "--mtbf-hours", "5"},
                   std::chrono::seconds(60));
  EXPECT_EQ(alone.status, 2);
  EXPECT_THAT(alone.output, AllOf(HasSubstr("--mtbf-hours"), HasSubstr("--learners N")));
}

TEST(PredictLearners, AFlagThatSaysNothingAboutThemIsAnError) {
  const auto refused = [](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"predict", "--parameters", "1e6", "--step-ms",
                                      "100",     "--learners",   "50"};
    words.insert(words.end(), more.begin(), more.end());
    const Finished run = run_paceline(words, std::chrono::seconds(60));
    EXPECT_EQ(run.status, 2) << run.output;
    return run.output;
  };
  for (const auto& [flag, value] :
       std::vector<std::pair<std::string, std::string>>{{"--workers", "4"},
                                                        {"--ps", "2"},
                                                        {"--strategy", "sync"},
                                                        {"--transport", "332MB/s"},
                                                        {"--tensors", "5"},
                                                        {"--input-rate", "100"},
                                                        {"--examples", "8"}}) {
    EXPECT_THAT(refused({flag, value}), HasSubstr("--learners and " + flag + " cannot both be"));
  }
  for (const std::string flag : {"--restart-s", "--notice-s"}) {
    EXPECT_THAT(refused({flag, "5"}), HasSubstr(flag + " needs --mtbf-hours"));
  }
}

TEST_F(PredictTest, OfSizesNeedsNoModel) {
  const Finished made = run_paceline(
      {"predict", "--parameters", "18.9e6", "--step-ms", "5.6", "--workers", "4", "--gbps", "1"},
      std::chrono::seconds(60));
  EXPECT_EQ(made.status, 0) << made.output;
  EXPECT_THAT(made.output,
              AllOf(HasSubstr("ps:0's link carries 119 MB/s"), HasSubstr("allreduce, 4 workers")));
  const Finished in_rounds = run_paceline({"predict", "--parameters", "1e6", "--step-ms", "5",
                                           "--workers", "4", "--strategy", "sync", "--ps", "2"},
                                          std::chrono::seconds(60));
  EXPECT_THAT(in_rounds.output,
              AllOf(HasSubstr("\nsync, 2 ps + 4 workers  "), Not(HasSubstr("async")),
                    Not(HasSubstr("allreduce")), Not(HasSubstr("4 ps"))));
}

TEST_F(PredictTest, OfSizesKnowsWhichStrategyHasParameterServers) {
  const auto with = [](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"predict", "--parameters", "1e6", "--step-ms",
                                      "5",       "--workers",    "2"};
    words.insert(words.end(), more.begin(), more.end());
    return run_paceline(words, std::chrono::seconds(60)).output;
  };
  EXPECT_THAT(with({"--strategy", "allreduce"}), HasSubstr("allreduce, 2 workers with Paceline:"));
  EXPECT_THAT(with({"--strategy", "allreduce", "--ps", "1"}),
              HasSubstr("--strategy allreduce: has no parameter servers: give --ps 0"));
  EXPECT_THAT(with({"--strategy", "sync", "--ps", "0"}),
              HasSubstr("--strategy sync: needs a parameter server: give --ps 1"));
}

/// Returns the prediction for a system with this transport.
Finished with_transport(const std::string& transport) {
  return run_paceline({"predict", "--parameters", "1e6", "--step-ms", "5", "--workers", "2",
                       "--transport", transport},
                      std::chrono::seconds(60));
}

TEST(PredictTransport, MayBeARateATimeOrBoth) {
  for (const std::string transport :
       {"332MB/s,350us", "350\u00b5s,332e3kB/s", "1000GB/s", "1kB/s", "10s", "0.01us", "0.35ms"}) {
    const Finished made = with_transport(transport);
    EXPECT_EQ(made.status, 0) << made.output;
    EXPECT_THAT(made.output, HasSubstr("async, 1 ps + 2 workers with that transport: "));
  }
}

TEST(PredictTransport, ThatNoSystemHasIsRefusedWithTheUnits) {
  for (const std::string transport :
       {"fast", "nanMB/s", "infMB/s", "1e-300MB/s", "1001GB/s", "0us", "-1us", "11s", "332",
        "332mB/s", "332MB/s,", ",350us", "332MB/s,1GB/s", "350 us"}) {
    const Finished wrong = with_transport(transport);
    EXPECT_EQ(wrong.status, 2) << wrong.output;
    EXPECT_THAT(wrong.output, HasSubstr("--transport " + transport + ": must be the rate"));
    EXPECT_THAT(wrong.output, AllOf(HasSubstr("kB/s, MB/s or GB/s"), HasSubstr("such as 332MB/s")));
  }
}

TEST_F(PredictTest, ARunSaysWhatItExpectsAndWhatItMade) {
  const std::string path = folder_.path() + "/report.json";
  const Finished made =
      run({"train"}, {"--ps", "1", "--workers", "2", "--seconds", "1", "--report", path});
  EXPECT_EQ(made.status, 0) << made.output;
  EXPECT_THAT(made.output, ContainsRegex("worker:0 .*Expected: [0-9.,]+ steps/s"));
  EXPECT_THAT(made.output, ContainsRegex("Expected [0-9.,]+ steps/s .* and made"));
  const Report report = read_report(path);
  ASSERT_TRUE(report.expected);
  EXPECT_GT(report.expected->steps_per_s, 0);
  EXPECT_FALSE(report.expected->limit.empty());
}

// A run trusts rates that were measured within the last ten minutes, and measures older ones again.
TEST_F(PredictTest, ARunExpectsWhatThisMachineWasLatelySeenToDo) {
  const std::string cache = folder_.path("cache"), path = folder_.path("report.json");
  setenv("XDG_CACHE_HOME", cache.c_str(), 1);
  const auto expected = [&] {
    std::vector<std::string> words = {"train"};
    words.insert(words.end(), kSmallJob.begin(), kSmallJob.end());
    words.insert(words.end(), {"--ps", "1", "--workers", "1", "--steps", "5", "--report", path});
    const Finished made = run_paceline(words, std::chrono::seconds(60));
    EXPECT_EQ(made.status, 0) << made.output;
    return read_report(path).expected->steps_per_s;
  };
  // Changes the only file of hosts in the cache: its rates become a millionth of what they were,
  // and it was measured this many seconds earlier, in an unknown placement of the cores.
  const auto make_slow = [&](int seconds_earlier) {
    for (const auto& entry : std::filesystem::directory_iterator(cache + "/paceline")) {
      if (!entry.path().filename().string().starts_with("host-")) continue;
      nlohmann::json all = nlohmann::json::parse(std::ifstream(entry.path()));
      auto& measured = all["measured"][0];
      for (const auto& [name, value] : measured.items()) {
        if (name.ends_with("_per_s")) value = value.get<double>() / 1e6;
      }
      measured["core_trip_s"] = 0;
      measured["others_share"] = 0;  // whatever ran beside this test
      measured["at"] = measured["at"].get<std::int64_t>() - seconds_earlier;
      write_text_file("the cache", entry.path(), all.dump());
      return;
    }
    ADD_FAILURE() << "nothing was measured";
  };
  const double here = expected();
  make_slow(0);
  EXPECT_LT(expected(), 0.1 * here);
  make_slow(7200);
  EXPECT_GT(expected(), 0.5 * here);
  unsetenv("XDG_CACHE_HOME");
}

// Kernels take most of the time, so two workers with half of the cores each are hardly faster than
// one process with all cores.
TEST_F(PredictTest, ARunComparesItselfWithOneProcessOnAllCores) {
  const std::string path = folder_.path("report.json"), roof = folder_.path("slow.toml");
  write_text_file(
      "the roof", roof,
      fmt::format("[[host]]\ncores = {}\ngflops = 10\ngbytes_per_s = 50\n", usable_cores()));
  const Finished made =
      run_paceline({"train", "mlp", "--hidden", "96", "--batch", "48", "--roof", roof, "--ps", "1",
                    "--workers", "2", "--steps", "10", "--report", path},
                   std::chrono::seconds(60));
  ASSERT_EQ(made.status, 0) << made.output;
  const Report report = read_report(path);
  ASSERT_TRUE(report.expected);
  const auto& ways = report.expected->other_ways;
  const auto alone = std::ranges::find(ways, "", &std::pair<std::string, double>::first);
  ASSERT_NE(alone, ways.end()) << made.output;
  EXPECT_LT(report.expected->steps_per_s, 1.3 * alone->second);
}

// Many workers with many messages take long to simulate, so that no time is left for other ways.
TEST_F(PredictTest, ARunComparesItselfWithOneProcessHoweverLongItIsPredicted) {
  const std::string path = folder_.path("report.json");
  const Finished made = run_paceline(
      {"train", "resnet", "--device", "sim", "--sim-step-ms", "5", "--ps", "1", "--workers", "6",
       "--link", "tcp", "--steps", "12", "--roof", roof_, "--report", path},
      std::chrono::seconds(120));
  ASSERT_EQ(made.status, 0) << made.output;
  const Report report = read_report(path);
  ASSERT_TRUE(report.expected && !report.expected->other_ways.empty());
  EXPECT_EQ(report.expected->other_ways.front().first, "");
}

TEST_F(PredictTest, TheLauncherTakesTheFastestWayThatIsLeftOpen) {
  const std::string path = folder_.path("report.json");
  const Finished made =
      run({"train"}, {"--workers", "2", "--strategy", "auto", "--steps", "20", "--report", path});
  EXPECT_EQ(made.status, 0) << made.output;
  EXPECT_THAT(made.output,
              ContainsRegex("--strategy auto: of [0-9]+ ways takes --ps [0-9] --workers 2"));
  const Report report = read_report(path);
  EXPECT_THAT(made.output, HasSubstr("--workers 2 --strategy " + report.strategy));
}

TEST_F(PredictTest, OneProcessMayBecomeACluster) {
  const Finished made = run({"train"}, {"--strategy", "auto", "--steps", "20"});
  EXPECT_EQ(made.status, 0) << made.output;
  EXPECT_THAT(made.output, ContainsRegex("takes --ps [0-9] --workers 8"));
}

TEST_F(PredictTest, FlagsAboutWorkersLeaveTheirNumberOpen) {
  const Finished made =
      run({"train"}, {"--strategy", "auto", "--wire", "bfloat16", "--steps", "20"});
  EXPECT_EQ(made.status, 0) << made.output;
  EXPECT_THAT(made.output, ContainsRegex("takes --ps [0-9] --workers 8"));
}

TEST_F(PredictTest, SeveralDevicesOfOneProcessAreCompared) {
  const std::string json = folder_.path("ways.json");
  const Finished table = run({"predict"}, {"--towers", "8", "--json", json});
  EXPECT_EQ(table.status, 0) << table.output;
  EXPECT_THAT(table.output,
              AllOf(HasSubstr("\none process  "), HasSubstr("\none process, 8 devices  "),
                    HasSubstr("\nasync, 1 ps + 1 worker, 8 devices each  ")));
  const auto all = nlohmann::json::parse(std::ifstream(json));
  std::map<int, double> examples;  // by the devices of one process
  for (const auto& way : all["ways"]) {
    if (way["workers"] == 1 && way["ps"] == 0) examples[way["towers"]] = way["examples_per_s"];
  }
  ASSERT_THAT(examples, SizeIs(4));
  for (const int towers : {2, 4, 8}) {
    EXPECT_GT(examples[towers], 0.8 * towers * examples[1]) << towers;
    EXPECT_LT(examples[towers], 1.1 * towers * examples[1]) << towers;
  }
}

TEST_F(PredictTest, ASessionWithSeveralDevicesSaysWhatItExpects) {
  const std::string path = folder_.path("report.json");
  const Finished made = run({"train"}, {"--towers", "2", "--steps", "20", "--report", path});
  EXPECT_EQ(made.status, 0) << made.output;
  EXPECT_THAT(made.output, AllOf(ContainsRegex("Expected: [0-9.,]+ steps/s"),
                                 ContainsRegex("Expected [0-9.,]+ steps/s .* and made")));
  EXPECT_EQ(read_report(path).expected->way, "--towers 2");
}

TEST_F(PredictTest, TheFastestWayKeepsTheDevicesOfEachWorker) {
  const Finished made = run({"train"}, {"--towers", "2", "--strategy", "auto", "--steps", "20"});
  EXPECT_EQ(made.status, 0) << made.output;
  EXPECT_THAT(made.output, ContainsRegex("takes --ps [0-9] --workers 4"));
}

TEST_F(PredictTest, BatchNormOfTheWholeBatchIsNotPredicted) {
  const Finished table =
      run_paceline({"predict", "resnet", "--ps", "0", "--workers", "2", "--sync-batch-norm"});
  EXPECT_EQ(table.status, 2);
  EXPECT_THAT(table.output, HasSubstr("--sync-batch-norm is not predicted"));
}

TEST_F(PredictTest, TheTableEndsWhenItsTimeIsOver) {
  const auto within = [&](const std::string& seconds) {
    return run({"predict"}, {"--time-limit", seconds});
  };
  EXPECT_THAT(within("1e-9").output,
              HasSubstr("--time-limit 1e-09: no way was predicted by then: give it more seconds"));
  EXPECT_THAT(within("1000").output, Not(HasSubstr("Not tried")));
}

TEST_F(PredictTest, TheNumberOfParameterServersIsTried) {
  const Finished table = run({"predict"}, {"--workers", "4"});
  EXPECT_EQ(table.status, 0) << table.output;
  EXPECT_THAT(table.output,
              AllOf(HasSubstr("async, 2 ps + 4 workers"), HasSubstr("allreduce, 4 workers")));
}

// What a flag fixes is kept, and numbers of tasks that no flag fixes are tried.
TEST_F(PredictTest, TriesTheNumbersThatFlagsLeaveOpen) {
  const auto of = [&](const std::vector<std::string>& more) {
    const Finished table = run({"predict"}, more);
    EXPECT_EQ(table.status, 0) << table.output;
    return table.output;
  };
  EXPECT_THAT(of({"--strategy", "sync"}),
              AllOf(HasSubstr("sync, 1 ps + 4 workers"), HasSubstr("sync, 4 ps + 8 workers"),
                    HasSubstr("one process"), Not(HasSubstr("async"))));
  EXPECT_THAT(of({"--strategy", "allreduce"}),
              AllOf(HasSubstr("allreduce, 8 workers"), Not(HasSubstr(" ps + "))));
  EXPECT_THAT(of({"--ps", "2"}),
              AllOf(HasSubstr("async, 2 ps + 8 workers"), Not(HasSubstr("allreduce"))));
  EXPECT_THAT(of({"--wire", "bfloat16", "--workers", "4"}),
              AllOf(HasSubstr("async, 2 ps + 4 workers, bfloat16"), Not(HasSubstr("8 workers"))));
  EXPECT_THAT(
      of({"--strategy", "local_sgd", "--local-steps", "8"}),
      AllOf(HasSubstr("local_sgd H=8, 1 ps + 4 workers"), HasSubstr("local_sgd H=8, 4 workers")));
}

TEST_F(PredictTest, AFileThatCannotBeReadIsRefusedBeforeAnythingStarts) {
  for (const std::string command : {"predict", "train"}) {
    const Finished made = run_paceline({command, "mlp", "--roof", "/nonexistent/roof.toml"});
    EXPECT_EQ(made.status, 2) << made.output;
    EXPECT_THAT(made.output, HasSubstr("--roof /nonexistent/roof.toml: cannot be read"));
  }
}

TEST_F(PredictTest, NeedsNoData) {
  const Finished table =
      run_paceline({"predict", "ptb", "--device", "sim", "--sim-step-ms", "36", "--roof", roof_,
                    "--ps", "1", "--workers", "2", "--strategy", "async"},
                   std::chrono::seconds(60));
  EXPECT_EQ(table.status, 0) << table.output;
  EXPECT_THAT(table.output, HasSubstr("async, 1 ps + 2 workers"));
}

TEST_F(PredictTest, WaysAreTriedOnEmulatedHosts) {
  const auto of = [&](const std::vector<std::string>& more) {
    const Finished table = run({"predict"}, more);
    EXPECT_EQ(table.status, 0) << table.output;
    return table.output;
  };
  // Each host has a link of 1 Gbit/s, and, unless the number of workers is given, one worker.
  EXPECT_THAT(of({"--lab-hosts", "3"}),
              AllOf(HasSubstr("host 0 to host 2, each"), HasSubstr("async, 1 ps + 1 worker "),
                    HasSubstr("allreduce, 3 workers"), Not(HasSubstr("4 workers"))));
  EXPECT_THAT(of({"--lab-hosts", "3", "--workers", "4"}),
              AllOf(HasSubstr("sync, 4 ps + 4 workers"), HasSubstr("async, 1 ps + 4 workers"),
                    HasSubstr("allreduce, 4 workers")));
  EXPECT_THAT(of({"--lab-hosts", "2", "--workers", "2", "--strategy", "auto"}),
              AllOf(HasSubstr("async, 2 ps + 2 workers"), HasSubstr("allreduce, 2 workers")));
}

TEST_F(PredictTest, WhatTheFlagsSayStaysEvenIfItIsTheDefault) {
  const std::string hosts = folder_.path() + "/hosts.toml";
  write_text_file("the hosts", hosts, "[[host]]\ncount = 3\ncores = 8\ndevices = 1\ngbps = 1\n");
  const std::vector<std::string> flags = {"--hosts", hosts, "--ps", "1", "--workers", "2"};
  const Finished any = run({"predict"}, flags);
  EXPECT_THAT(any.output, AllOf(HasSubstr("\nsync, 1 ps"), HasSubstr("bfloat16"))) << any.output;
  std::vector<std::string> fixed = flags;
  fixed.insert(fixed.end(), {"--strategy", "async", "--wire", "float32"});
  const Finished one = run({"predict"}, fixed);
  EXPECT_EQ(one.status, 0) << one.output;
  EXPECT_THAT(one.output, AllOf(HasSubstr("async, 1 ps + 2 workers"),
                                Not(HasSubstr("\nsync, 1 ps")), Not(HasSubstr("bfloat16"))));
}

TEST_F(PredictTest, EveryProgramPredicts) {
  const Finished made = run({"train"}, {"--ps", "1", "--workers", "2", "--predict"});
  EXPECT_EQ(made.status, 0) << made.output;
  EXPECT_THAT(made.output, HasSubstr("async, 1 ps + 2 workers"));
}

// No driver is needed.
TEST_F(PredictTest, ADeviceIsPredictedFromItsRoofFile) {
  const std::string with = folder_.path() + "/device.toml";
  write_text_file("the roof", with,
                  "[[host]]\ncores = 4\ngflops = 200\ngbytes_per_s = 50\ndevices = 2\n"
                  "[host.device]\nname = \"Some GPU\"\ngflops = 50000\ngbytes_per_s = 4000\n"
                  "launch_us = 5\nupload_gbytes_per_s = 50\ndownload_gbytes_per_s = 40\n");
  const std::vector<std::string> words = {"predict", "mlp", "--hidden", "32", "--device", "cuda"};
  const auto predicted = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = words;
    all.insert(all.end(), more.begin(), more.end());
    return run_paceline(all, std::chrono::seconds(60));
  };
  const Finished by_roof = predicted({"--roof", with});
  EXPECT_EQ(by_roof.status, 0) << by_roof.output;
  EXPECT_THAT(by_roof.output,
              AllOf(HasSubstr("of Some GPU are predicted from its roof file and were not "
                              "verified by a run"),
                    HasSubstr("allreduce, 2 workers"), Not(HasSubstr("4 workers"))));
  const Finished by_hosts = predicted({"--hosts", with, "--roof", roof_});
  EXPECT_EQ(by_hosts.status, 0) << by_hosts.output;
  EXPECT_THAT(by_hosts.output, HasSubstr("of Some GPU are predicted from its roof file"));

  const Finished without = predicted({"--roof", roof_});
  EXPECT_EQ(without.status, 2);
  EXPECT_THAT(without.output, HasSubstr("--roof " + roof_ +
                                        ": the section [host.device] is missing, which "
                                        "--device cuda needs: paceline roof --device cuda"));
  const Finished hosts = predicted({"--hosts", roof_});
  EXPECT_EQ(hosts.status, 2);
  EXPECT_THAT(hosts.output, HasSubstr("host 0 has no section [host.device]"));
  EXPECT_THAT(predicted({}).output, HasSubstr("--device cuda is not predicted: how long its "
                                              "kernels take is not known"));
}

}  // namespace
}  // namespace paceline::testing
