#include "cli/flags/tf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/error_of.h"
#include "paceline/error.h"

namespace paceline {
namespace {

using testing::StartsWith;

std::string flags_in_words(const std::string& text) {
  std::string all;
  for (const GivenFlag& flag : flags_of_tf_config(text))
    all += flag.name + " " + flag.values[0] + " ";
  return all;
}

std::string refusal_of_tf_config(const std::string& text) {
  return error_of(ErrorCode::kUsage, [&] { flags_in_words(text); });
}

// A cluster as the training operator of Kubeflow writes it.
const std::string kCluster =
    R"({"cluster":{"chief":["j-chief-0.d.svc:2222"],"ps":["j-ps-0.d.svc:2222"],)"
    R"("worker":["j-worker-0.d.svc:2222","j-worker-1.d.svc:2222"]},)";
const std::string kSpec =
    "--cluster ps=j-ps-0.d.svc:2222;worker=j-chief-0.d.svc:2222,j-worker-0.d.svc:2222,"
    "j-worker-1.d.svc:2222 --task ";

TEST(TfConfig, TheChiefBecomesWorkerZeroAndTheOthersShift) {
  const auto task = [](const std::string& type, const std::string& index) {
    return flags_in_words(kCluster + R"("task":{"type":")" + type + R"(","index":)" + index +
                          R"(},"environment":"cloud"})");
  };
  EXPECT_EQ(task("chief", "0"), kSpec + "worker:0 ");
  EXPECT_EQ(task("worker", "0"), kSpec + "worker:1 ");
  EXPECT_EQ(task("worker", "1"), kSpec + "worker:2 ");
  EXPECT_EQ(task("worker", "\"1\""), kSpec + "worker:2 ");
  EXPECT_EQ(task("ps", "0"), kSpec + "ps:0 ");
  EXPECT_EQ(task("evaluator", "0"), "--task evaluator:0 ") << "it needs no cluster";
}

TEST(TfConfig, AMasterIsAChief) {
  EXPECT_EQ(flags_in_words(R"({"cluster":{"master":["a:1"],"ps":["b:1"],"worker":["c:1"]},)"
                           R"("task":{"type":"worker","index":0}})"),
            "--cluster ps=b:1;worker=a:1,c:1 --task worker:1 ");
}

TEST(TfConfig, WithoutAChiefWorkersKeepTheirNumbers) {
  EXPECT_EQ(
      flags_in_words(R"({"cluster":{"ps":["b:1"],"worker":["c:1","d:1"],"evaluator":["e:1"]},)"
                     R"("task":{"type":"worker","index":1}})"),
      "--cluster ps=b:1;worker=c:1,d:1;evaluator=e:1 --task worker:1 ");
}

TEST(TfConfig, OneTaskIsAlone) {
  EXPECT_EQ(flags_in_words("{}"), "");
  EXPECT_EQ(flags_in_words(R"({"cluster":{"worker":["c:1"]},"task":{"type":"worker","index":0}})"),
            "--one-task  ");
}

TEST(TfConfig, SeveralWorkersWithoutAPsAreAnAllReduce) {
  EXPECT_EQ(flags_in_words(R"({"cluster":{"chief":["a:1"],"worker":["b:1"]},)"
                           R"("task":{"type":"worker","index":0}})"),
            "--cluster worker=a:1,b:1 --task worker:1 ");
}

TEST(TfConfig, WithoutATaskTheClusterIsStillGiven) {
  EXPECT_EQ(flags_in_words(R"({"cluster":{"ps":["b:1"],"worker":["c:1"]}})"),
            "--cluster ps=b:1;worker=c:1 ");
}

TEST(TfConfig, WhatIsWrongIsSaidWithItsPlace) {
  const std::string cluster = R"({"cluster":{"ps":["b:1"],"worker":["c:1"]},)";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{\n\"cluster\":", "TF_CONFIG, line 2, column "},
      {"7", "TF_CONFIG, line 1, column 1: it must be a table"},
      {R"({"cluster":[]})", "TF_CONFIG, line 1, column 2: 'cluster' must be a table"},
      {R"({"cluster":{"wroker":["a:1"]}})",
       "TF_CONFIG, line 1, column 13: unknown job 'wroker'; did you mean 'worker'?"},
      {R"({"cluster":{"ps":"b:1"}})", "TF_CONFIG, line 1, column 13: 'ps' must be a list"},
      {R"({"cluster":{"ps":["b:1",2]}})", "TF_CONFIG, line 1, column 25: an address of 'ps'"},
      {R"({"cluster":{"ps":["b:1,c:1"]}})",
       "TF_CONFIG, line 1, column 19: 'b:1,c:1' is not an address"},
      {R"({"cluster":{"chief":["a:1"],"master":["b:1"]}})",
       "TF_CONFIG, line 1, column 29: 'chief' and 'master' are the same job"},
      {R"({"cluster":{"chief":["a:1","b:1"]}})", "TF_CONFIG, line 1, column 2: there is only one"},
      {R"({"cluster":{"ps":["a:1","b:1"]}})", "TF_CONFIG, line 1, column 2: there is no worker"},
      {R"({"sparseCluster":{}})", "TF_CONFIG, line 1, column 2: a cluster that changes its size"},
      {cluster + R"("task":3})", "TF_CONFIG, line 1, column 44: 'task' must be a table"},
      {cluster + R"("task":{"index":0}})", "TF_CONFIG, line 1, column 44: the task's type"},
      {cluster + R"("task":{"type":"p","index":0}})",
       "TF_CONFIG, line 1, column 52: unknown job 'p'; did you mean 'ps'?"},
      {cluster + R"("task":{"type":"ps"}})",
       "TF_CONFIG, line 1, column 44: the task has a type, ps"},
      {cluster + R"("task":{"type":"ps","index":-1}})", "TF_CONFIG, line 1, column 64: the task's"},
      {cluster + R"("task":{"type":"worker","index":1}})",
       "TF_CONFIG, line 1, column 44: task worker:1 is not in the cluster, which has 1 of"},
      {cluster + R"("task":{"type":"chief","index":0}})",
       "TF_CONFIG, line 1, column 44: task chief:0"},
  };
  for (const auto& [text, message] : cases)
    EXPECT_THAT(refusal_of_tf_config(text), StartsWith(message)) << text;
}

}  // namespace
}  // namespace paceline
