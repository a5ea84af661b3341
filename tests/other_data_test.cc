// Tests that a worker, a resumed training and an evaluation must have the same data as the job or
// the checkpoint: other classes, words or numbers of records are refused, and the first difference
// is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>

#include "paceline/data.h"
#include "tests/process.h"

namespace paceline::testing {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr seconds kEndsWithin{60};

class OtherData : public ::testing::Test {
 protected:
  // Writes `of_each` images of each class into the folder `name`.
  std::string images(const std::string& name, const Words& classes, int of_each = 4) const {
    const std::vector<std::uint8_t> grey(32 * 32 * 3, 128);
    for (const std::string& each : classes) {
      const std::string folder = folder_.path(name) + "/" + each;
      std::filesystem::create_directories(folder);
      for (int i = 0; i < of_each; ++i) {
        write_png(folder + "/" + std::to_string(i) + ".png", grey, 32, 32);
      }
    }
    return folder_.path(name);
  }
  std::string text(const std::string& name, const std::string& words) const {
    std::filesystem::create_directories(folder_.path(name));
    for (const char* part : {"train", "valid", "test"}) {
      std::ofstream file(folder_.path(name) + "/ptb." + part + ".txt");
      for (int i = 0; i < 200; ++i) file << words << '\n';
    }
    return folder_.path(name);
  }
  static Words resnet(const std::string& data, const Words& more = {}) {
    return join({{"train", "resnet", "--depth", "8", "--batch", "4", "--threads", "1", "--data",
                  data, "--set", "evaluate_every=0"},
                 more});
  }
  static Words ptb(const std::string& data, const Words& more = {}) {
    return join({{"train", "ptb", "--batch", "2", "--set", "hidden=8", "--set", "unroll=4",
                  "--threads", "1", "--data", data},
                 more});
  }
  static void expect_refused(const Words& words, const std::string& difference) {
    const Finished run = run_paceline(words);
    EXPECT_NE(run.status, 0) << run.output;
    EXPECT_THAT(run.output, HasSubstr(difference));
  }
  static std::string run(const Words& words) {
    const Finished run = run_paceline(words);
    EXPECT_EQ(run.status, 0) << run.output;
    return run.output;
  }
  const TemporaryFolder folder_;
};

TEST_F(OtherData, OfRenamedClassFoldersIsRefusedByResumeAndEval) {
  const std::string data = images("data", {"cat", "dog", "owl"});
  const Words out = {"--out", folder_.path("run")};
  const Words resume = resnet(data, join({out, {"--resume", "--steps", "4"}}));
  const Words eval = join(
      {{"eval", "resnet", "--depth", "8", "--batch", "4", "--eval-data", data, "--once"}, out});
  run(resnet(data, join({out, {"--steps", "2"}})));
  run(eval);
  std::filesystem::rename(data + "/cat", data + "/zebra");  // dog has the label of cat now
  const std::string lacks = "is of other data: the classes of the data lack 'cat', which it";
  expect_refused(resume, lacks);
  expect_refused(eval, lacks);
  std::filesystem::rename(data + "/zebra", data + "/cat");
  run(resume);
}

TEST_F(OtherData, OfSwappedClassFoldersIsRefusedByResumeAndEval) {
  const std::string data = images("data", {"1 cat", "2 dog"});
  const Words out = {"--out", folder_.path("run")};
  run(resnet(data, join({out, {"--steps", "2"}})));
  std::filesystem::rename(data + "/1 cat", data + "/2 cat");
  std::filesystem::rename(data + "/2 dog", data + "/1 dog");
  const std::string lacks = "is of other data: the classes of the data lack '1 cat', which it";
  expect_refused(resnet(data, join({out, {"--resume", "--steps", "4"}})), lacks);
  expect_refused(
      join(
          {{"eval", "resnet", "--depth", "8", "--batch", "4", "--eval-data", data, "--once"}, out}),
      lacks);
}

TEST_F(OtherData, OfAnotherVocabularyIsRefusedByResume) {
  const Words out = {"--out", folder_.path("run")};
  run(ptb(text("data", "the cat sat on the mat"), join({out, {"--steps", "2"}})));
  expect_refused(
      ptb(text("other", "the cow sat on the mat"), join({out, {"--resume", "--steps", "4"}})),
      "is of other data: the words of the data lack 'cat', which it was trained with");
}

TEST_F(OtherData, IsTakenByACheckpointWithoutClassesAndThatIsSaid) {
  const std::string binary = folder_.path("binary");
  run({"data", "images", "--out", binary, "--count", "40"});
  const Words out = {"--out", folder_.path("run")};
  run(resnet(binary, join({out, {"--steps", "2"}})));
  const std::string data = images("data", {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}, 1);
  const Words eval = join(
      {{"eval", "resnet", "--depth", "8", "--batch", "4", "--eval-data", data, "--once"}, out});
  const std::string said =
      "step-2 does not tell its classes: they are taken to be those of the data";
  EXPECT_THAT(run(eval), HasSubstr(said));
  EXPECT_THAT(run(resnet(data, join({out, {"--resume", "--steps", "4"}}))), HasSubstr(said));
  EXPECT_THAT(run(eval), Not(HasSubstr("does not tell"))) << "step 4 does";
}

/// Two workers that are started one by one, with a ps or without.
class OtherDataOfAWorker : public OtherData, public ::testing::WithParamInterface<bool> {
 protected:
  std::unique_ptr<Process> start(const std::string& task, const Words& words) const {
    return std::make_unique<Process>(paceline_words(
        join({words, {"--cluster", spec_, "--cluster-id", "test", "--task", task}})));
  }
  // Expects that worker 1 is refused, and that the chief goes on.
  void expect_worker_refused(const Words& chief, const Words& worker,
                             const std::string& difference) const {
    const auto ps = GetParam() ? start("ps:0", chief) : nullptr;
    const auto first = start("worker:0", chief), second = start("worker:1", worker);
    EXPECT_EQ(second->wait_exit(kEndsWithin), 1) << second->output();
    EXPECT_THAT(second->output(), HasSubstr(difference));
    first->signal(SIGINT);
    EXPECT_EQ(first->wait_exit(kEndsWithin), 130) << first->output();
  }
  std::string chiefs() const { return GetParam() ? "the chief's " : "worker:0's "; }
  const std::string ps_ = free_address(), chief_ = free_address(), other_ = free_address();
  const std::string spec_ =
      (GetParam() ? "ps=" + ps_ + ";" : std::string()) + "worker=" + chief_ + "," + other_;
};
INSTANTIATE_TEST_SUITE_P(Jobs, OtherDataOfAWorker, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "WithAPs" : "AllReduce"; });

TEST_P(OtherDataOfAWorker, OtherClassesAreRefused) {
  const std::string data = images("data", {"cat", "dog", "owl"});
  expect_worker_refused(resnet(data), resnet(images("renamed", {"cat", "eel", "owl"})),
                        chiefs() + "number 1 of the classes is 'dog', that of worker:1 is 'eel'");
}

TEST_P(OtherDataOfAWorker, AClassLessIsNamedAndNotTheVariables) {
  expect_worker_refused(resnet(images("data", {"cat", "dog", "owl"})),
                        resnet(images("less", {"cat", "dog"})),
                        chiefs() + "number 2 of the classes is 'owl', that of worker:1 is missing");
}

TEST_P(OtherDataOfAWorker, AnotherVocabularyIsRefused) {
  expect_worker_refused(ptb(text("data", "the cat sat on the mat")),
                        ptb(text("other", "the cow sat on the mat")), "that of worker:1 is 'cow'");
}

TEST_P(OtherDataOfAWorker, AnotherNumberOfRecordsIsRefusedWhereTheyAreSharedOut) {
  const Words shares = {"--shard", "dynamic"};
  expect_worker_refused(resnet(images("data", {"cat", "dog"}, 8), shares),
                        resnet(images("fewer", {"cat", "dog"}, 6), shares),
                        chiefs() + "number of records is 16, that of worker:1 is 12");
}

TEST_P(OtherDataOfAWorker, APartOfItsOwnIsNot) {
  const Words steps = {"--steps", "6"};
  const Words chief = resnet(images("data", {"cat", "dog"}, 8), steps);
  const auto ps = GetParam() ? start("ps:0", chief) : nullptr;
  const auto first = start("worker:0", chief);
  const auto second = start("worker:1", resnet(images("fewer", {"cat", "dog"}, 6), steps));
  EXPECT_EQ(second->wait_exit(kEndsWithin), 0) << second->output();
  EXPECT_EQ(first->wait_exit(kEndsWithin), 0) << first->output();
}

}  // namespace
}  // namespace paceline::testing
