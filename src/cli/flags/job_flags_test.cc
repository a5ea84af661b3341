#include "cli/flags/job_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "cli/flags/cluster_reader.h"
#include "cli/flags/flags.h"
#include "paceline/error.h"

namespace paceline {
namespace {

using testing::HasSubstr;

constexpr const char* kTfConfig =
    R"({"cluster":{"ps":["b:1"],"worker":["c:1","d:1"]},"task":{"type":"worker","index":1}})";

/// Reads flags from a file, a command line and an environment.
class JobFlags : public testing::Test {
 protected:
  JobFlags()
      : path_(std::filesystem::temp_directory_path() /
              ("job_flags_test_" + std::to_string(getpid()) + ".toml")) {}
  ~JobFlags() override { std::filesystem::remove(path_); }

  FlagValues read(const std::string& toml, const std::string& words,
                  const char* tf_config = nullptr, const char* paceline_task = nullptr,
                  const char* paceline_predict = nullptr) const {
    std::ofstream(path_) << toml;
    CommandLine line{"trainer", "Trains.", "", run_flags()};
    const std::vector<Flag> cluster = cluster_flags();
    line.flags.insert(line.flags.end(), cluster.begin(), cluster.end());
    std::vector<std::string> arguments;
    std::istringstream stream(words);
    for (std::string word; stream >> word;) arguments.push_back(word);
    if (!toml.empty()) arguments.insert(arguments.end(), {"--config", path_.string()});
    const Environment environment = [&](const char* name) {
      if (name == std::string("PACELINE_TASK")) return paceline_task;
      if (name == std::string("PACELINE_PREDICT")) return paceline_predict;
      return name == std::string("TF_CONFIG") ? tf_config : nullptr;
    };
    return parse_job(line, arguments, environment).value();
  }
  Cluster cluster(const std::string& toml, const std::string& words,
                  const char* tf_config = nullptr) const {
    const FlagValues values = read(toml, words, tf_config);
    return values.with_places([&] { return read_cluster(values); });
  }

  const std::filesystem::path path_;
};

// A command that `paceline launch` starts may have flags of a launcher itself, and may also be
// started by other launchers.
TEST_F(JobFlags, ReadWhatPacelineLaunchSays) {
  const char* const task =
      R"({"cluster":"ps=a:1;worker=b:1,c:1","task":"worker:1","threads":"3","report":"r"})";
  for (const char* const words : {"", "--ps 1 --workers 2"}) {
    const FlagValues values = read("", words, kTfConfig, task);
    const Cluster cluster = values.with_places([&] { return read_cluster(values); });
    EXPECT_EQ(cluster.process, Cluster::Process::kTask);
    EXPECT_EQ(cluster.task.str(), "worker:1");
    EXPECT_EQ(cluster.spec.ps, std::vector<std::string>{"a:1"});
    EXPECT_EQ(cluster.threads, 3);
    EXPECT_TRUE(cluster.launch.launched && cluster.launch.in_command);
  }
  EXPECT_EQ(read("", "--threads 5", nullptr, task).text("--threads"), "5");
  EXPECT_FALSE(read("", "--alone", nullptr, task).given("--task"));
  try {
    read("", "", nullptr, R"({"task": 1, "tsak": 2})");
    FAIL() << "a key that is none";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::StartsWith("PACELINE_TASK, line 1, column 13: "));
  }
}

// The flags of `paceline predict` replace those of the command, so the command's strategy does not
// restrict the prediction.
TEST_F(JobFlags, ReadWhatPacelinePredictSays) {
  const auto asked = [&](const std::string& toml, const std::string& words, const char* told) {
    return read(toml, words, nullptr, nullptr, told);
  };
  const std::string own = "--strategy ssp --staleness 3 --wire bfloat16 --accumulate 2";
  const FlagValues open = asked("", own, R"({"predict":true,"json":"w"})");
  EXPECT_TRUE(open.given("--predict"));
  EXPECT_EQ(open.text("--json"), "w");
  EXPECT_FALSE(open.given("--strategy"));
  EXPECT_FALSE(open.given("--staleness"));
  EXPECT_EQ(open.text("--wire"), "bfloat16");
  EXPECT_EQ(open.text("--accumulate"), "2");
  const FlagValues told = asked("strategy = 'ssp'\nworkers = 7", own,
                                R"({"predict":true,"strategy":"sync","wire":"float32"})");
  EXPECT_EQ(told.text("--strategy"), "sync");
  EXPECT_EQ(told.text("--wire"), "float32");
  EXPECT_EQ(told.text("--workers"), "7");
  const FlagValues here = asked("", "--cluster ps=a:1;worker=b:1 --task worker:0",
                                R"({"predict":true,"ps":"1","workers":"2"})");
  EXPECT_FALSE(here.given("--cluster"));
  EXPECT_FALSE(here.given("--task"));
  EXPECT_EQ(here.text("--workers"), "2");
  try {
    read("", "", nullptr, R"({"task":"worker:0"})", R"({"predict":true})");
    FAIL() << "a task of a job predicts nothing";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("without paceline launch"));
  }
}

TEST_F(JobFlags, WhatTheCommandLineGivesWins) {
  const FlagValues values = read("steps = 3\nseed = 7", "--steps 5");
  EXPECT_EQ(values.text("--steps"), "5");
  EXPECT_EQ(values.text("--seed"), "7");
}

TEST_F(JobFlags, AnotherWayToSayTheSameWinsToo) {
  EXPECT_FALSE(read("steps = 3", "--seconds 5").given("--steps"));
  const std::string hosts =
      "ps-hosts = 'a:1'\nworker-hosts = 'b:1'\njob-name = 'ps'\ntask-index = 0";
  EXPECT_EQ(cluster(hosts, "--ps 1 --workers 2").process, Cluster::Process::kLauncher);
  EXPECT_EQ(cluster(hosts, "--task worker:0").task.str(), "worker:0");
  EXPECT_EQ(cluster(hosts, "--cluster ps=x:1;worker=y:1").spec.str(), "ps=x:1;worker=y:1");
  EXPECT_EQ(cluster("ps = 1\nworkers = 2", "--cluster ps=x:1;worker=y:1 --task ps:0").process,
            Cluster::Process::kTask);
  EXPECT_EQ(cluster("ps = 1\nworkers = 2", "--workers 3").launch.ps, 1);
  const std::string key = "ps = 1\nworkers = 2\ntls = 'on'\nkey-file = 'k'";
  EXPECT_EQ(cluster(key, "").links.security.tls, Tls::kAlways);
  EXPECT_EQ(cluster(key, "--insecure").links.security.tls, Tls::kNever);
  EXPECT_EQ(cluster("ps = 1\nworkers = 2\ninsecure = true", "--key-file k").links.security.key_file,
            "k");
}

TEST_F(JobFlags, TfConfigGivesTheClusterAndTheTask) {
  const Cluster read = cluster("", "--join-timeout 9", kTfConfig);
  EXPECT_EQ(read.spec.str(), "ps=b:1;worker=c:1,d:1");
  EXPECT_EQ(read.task.str(), "worker:1");
  EXPECT_EQ(cluster("", "", "").process, Cluster::Process::kAlone);
}

TEST_F(JobFlags, AClusterThatShrankToOneTaskMayKeepItsFlags) {
  constexpr const char* kOne =
      R"({"cluster":{"worker":["c:1"]},"task":{"type":"worker","index":0}})";
  const Cluster read =
      cluster("",
              "--join-timeout 9 --show-placement --wire bfloat16 --top-k 4 --strategy ssp "
              "--staleness 2",
              kOne);
  EXPECT_EQ(read.process, Cluster::Process::kAlone);
  EXPECT_EQ(read.strategy.name, "alone");
  EXPECT_THROW(cluster("", "--join-timeout 9"), Error);
}

TEST_F(JobFlags, FlagsAndFilesWinOverTfConfig) {
  EXPECT_EQ(cluster("", "--ps 1 --workers 1", kTfConfig).process, Cluster::Process::kLauncher);
  EXPECT_EQ(cluster("ps = 1\nworkers = 1", "", kTfConfig).process, Cluster::Process::kLauncher);
  EXPECT_EQ(cluster("", "--task ps:0", kTfConfig).task.str(), "ps:0");
  EXPECT_EQ(cluster("", "--cluster ps=x:1;worker=y:1 --task ps:0", kTfConfig).spec.str(),
            "ps=x:1;worker=y:1");
}

TEST_F(JobFlags, FlagsWinOverWhatALauncherSays) {
  const std::map<std::string, std::string> pod = {
      {"JOB_SERVICE", "mlp"}, {"JOB_NAME", "mlp"}, {"JOB_COMPLETION_INDEX", "0"}};
  CommandLine line{"trainer", "Trains.", "", cluster_flags()};
  const FlagValues values =
      parse_job(line, {"--workers", "2", "--bind", "10.0.0.7"}, [&](const char* name) {
        const auto found = pod.find(name);
        return found == pod.end() ? nullptr : found->second.c_str();
      }).value();
  EXPECT_EQ(values.text("--task"), "worker:0");
  EXPECT_EQ(read_cluster(values).links.bind, "10.0.0.7:2222");
}

TEST_F(JobFlags, AnEvaluatorIsKnownAndNoPartOfTheCluster) {
  const Cluster read = cluster(
      "", "",
      R"({"cluster":{"ps":["b:1"],"worker":["c:1"]},"task":{"type":"evaluator","index":0}})");
  EXPECT_EQ(read.process, Cluster::Process::kEvaluator);
  EXPECT_EQ(cluster("", "--cluster ps=b:1;worker=c:1 --job-name evaluator --task-index 0").process,
            Cluster::Process::kEvaluator);
  for (const char* alone : {"--task evaluator", "--task evaluator:0", "--job-name evaluator"}) {
    EXPECT_EQ(cluster("", alone).process, Cluster::Process::kEvaluator) << alone;
  }
}

TEST_F(JobFlags, AJobKnowsThatItHasAnEvaluator) {
  const Cluster worker = cluster("", "--cluster ps=b:1;worker=c:1;evaluator=e:1 --task worker:0");
  EXPECT_TRUE(worker.launch.evaluator);
  EXPECT_EQ(worker.spec.str(), "ps=b:1;worker=c:1");
  EXPECT_FALSE(cluster("", "--cluster ps=b:1;worker=c:1 --task worker:0").launch.evaluator);
  EXPECT_TRUE(cluster("", "--ps 1 --workers 2 --out run --evaluator").launch.evaluator);
  for (const char* refused : {"--out run --evaluator", "--ps 1 --workers 2 --evaluator"}) {
    EXPECT_THROW(cluster("", refused), Error) << refused;
  }
}

TEST_F(JobFlags, WhatIsRefusedSaysWhereItWasGiven) {
  const auto refusal = [&](const std::string& toml, const char* tf_config) -> std::string {
    try {
      cluster(toml, "", tf_config);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage);
      return error.what();
    }
    return "(accepted)";
  };
  EXPECT_THAT(refusal("\nthreads = 'x'", nullptr),
              HasSubstr("--threads x: must be a whole number from 1 to 1024 (--threads is from " +
                        path_.string() + ", line 2, column 1)"));
  EXPECT_THAT(refusal("ps-hosts='a:1'\nworker-hosts='b:1'\njob-name='ps'\ntask-index=4", nullptr),
              HasSubstr("task ps:4"));
  EXPECT_THAT(
      refusal("", R"({"cluster":{"ps":["b:1"],"worker":["b:1"]},"task":{"type":"ps","index":0}})"),
      HasSubstr(
          "b:1 is the address of both ps:0 and worker:0 (--cluster is from TF_CONFIG, line 1, "
          "column 2)"));
  EXPECT_THAT(
      refusal("", R"({"cluster":{"ps":["b"],"worker":["c:1"]},"task":{"type":"ps","index":0}})"),
      HasSubstr("--cluster: 'b' is no address: the port is missing"));
  EXPECT_THAT(refusal("", R"({"cluster":{"ps":["b:1"],"worker":["c:1"]}})"),
              HasSubstr("but not which task of it this process is: add --task"));
}

}  // namespace
}  // namespace paceline
