// Tests the image models as users run them: trained on files, evaluated, resumed.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "tests/process.h"

namespace paceline::testing {
namespace {

using nlohmann::json;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Images : public ::testing::Test {
 protected:
  Images() {
    const Finished made =
        run_paceline({"data", "images", "--out", data(), "--count", "300", "--seed", "7"});
    EXPECT_EQ(made.status, 0) << made.output;
  }
  std::string data() const { return folder_.path("data"); }
  Words train(const std::string& model, const Words& more) const {
    return join({{"train", model, "--data", data(), "--batch", "20"}, more});
  }
  std::string run(const Words& words) const {
    const Finished finished = run_paceline(words);
    EXPECT_EQ(finished.status, 0) << finished.output;
    return finished.output;
  }
  TemporaryFolder folder_;
};

TEST_F(Images, Cifar10IsTrainedAndItsAveragesEvaluated) {
  const std::string output =
      run(train("cifar10", {"--steps", "20", "--threads", "2", "--set", "average_decay=0.5"}));
  EXPECT_THAT(output, ContainsRegex("step 10, loss = [0-9.]+ \\([0-9.]+ images/s; [0-9.]+ s/step"));
  EXPECT_THAT(output, ContainsRegex("precision 0\\.[0-9]{4}, best 0\\.[0-9]{4} at step 20"));
}

TEST_F(Images, ResnetIsTrainedWithAPsAndTwoWorkers) {
  const std::string output = run(train("resnet", {"--units", "1", "--steps", "30", "--threads", "1",
                                                  "--ps", "1", "--workers", "2"}));
  EXPECT_THAT(output, ContainsRegex("worker:0 \\| precision 0\\.[0-9]{4}, best 0\\.[0-9]{4}"));
  EXPECT_EQ(output.find("worker:1 | precision"), std::string::npos) << output;
}

TEST_F(Images, ARunThatIsResumedSeesTheImagesOfAnUnbrokenOne) {
  const Words whole = train("cifar10", {"--threads", "1", "--steps", "12", "--report",
                                        folder_.path("whole"), "--set", "evaluate_every=0"});
  run(whole);
  const Words cut = train(
      "cifar10", {"--threads", "1", "--out", folder_.path("out"), "--set", "evaluate_every=0"});
  run(join({cut, {"--steps", "5"}}));
  run(join({cut, {"--steps", "12", "--resume"}}));
  const auto last_loss = [](const std::string& path) {
    return json::parse(std::ifstream(path))["loss"]["last"].get<double>();
  };
  EXPECT_EQ(last_loss(folder_.path("out") + "/report.json"), last_loss(folder_.path("whole")));
}

TEST_F(Images, ACheckpointIsEvaluatedAsAtTheEndOfItsTraining) {
  const Words settings = {"--batch", "20", "--set", "average_decay=0.5"};
  const Words out = {"--out", folder_.path("out")}, images = {"--data", data()};
  const Words those_to_evaluate_with = {"--eval-data", data() + "/test_batch.bin"};
  const std::string trained =
      run(join({{"train", "cifar10", "--steps", "10"}, out, images, settings}));
  const std::string report = read_text(folder_.path("out") + "/report.json");
  std::set<std::string> losses;
  for (const Words& how :
       {join({images, {"--once"}}), images, join({those_to_evaluate_with, {"--once"}})}) {
    const std::string evaluated = run(join({{"eval", "cifar10"}, out, settings, how}));
    const std::string last_line = evaluated.substr(evaluated.rfind("\nprecision ") + 1);
    EXPECT_THAT(trained, HasSubstr(last_line));
    const std::size_t loss = evaluated.find("step 10: loss ");
    losses.insert(evaluated.substr(loss, evaluated.find(',', loss) - loss));
  }
  EXPECT_THAT(losses, ElementsAre(StartsWith("step 10: loss ")));
  EXPECT_EQ(read_text(folder_.path("out") + "/report.json"), report) << "it disturbs nothing";
  const Finished other = run_paceline(join({{"eval", "resnet", "--once"}, out, images}));
  EXPECT_EQ(other.status, 2) << other.output;
  EXPECT_THAT(other.output, HasSubstr("is a checkpoint of cifar10, not of resnet"));
}

// In every strategy, the best checkpoint of a run is the one that its evaluations name.
TEST_F(Images, TheBestCheckpointIsKeptInEveryStrategy) {
  const Words several = {"--ps", "1", "--workers", "2", "--strategy"};
  const Words clusters[] = {{},
                            join({several, {"async"}}),
                            join({several, {"ssp"}}),
                            join({several, {"sync"}}),
                            join({several, {"local_sgd", "--local-steps", "2"}}),
                            {"--ps", "0", "--workers", "2", "--strategy", "allreduce"}};
  for (std::size_t i = 0; i < std::size(clusters); ++i) {
    const std::string out = folder_.path("out") + std::to_string(i);
    const Words settings = {"--units", "1", "--batch", "20", "--data", data()};
    const std::string output =
        run(join({{"train", "resnet", "--steps", "30", "--threads", "1", "--out", out, "--keep",
                   "1", "--keep-best", "precision/valid:max", "--set", "evaluate_every=1"},
                  settings,
                  clusters[i]}));
    const json mark = json::parse(read_text(out + "/checkpoints/best.json"));
    EXPECT_EQ(mark["name"], "precision/valid");
    const std::string step = std::to_string(mark["step"].get<int>());
    const std::string precision = fmt::format("precision {:.4f}", mark["value"].get<double>());
    EXPECT_THAT(output, HasSubstr("the best checkpoint so far is that of step " + step));
    EXPECT_THAT(run(join({{"eval", "resnet", "--out", out + ":best"}, settings})),
                AllOf(HasSubstr("\nstep " + step + ": "), HasSubstr(precision)))
        << output;
    EXPECT_THAT(
        run(join({{"train", "resnet", "--steps", "1", "--init-from", out + ":best"}, settings})),
        HasSubstr("begin with the values in " + out + "/checkpoints/step-" + step));
  }
}

// During the run, the evaluator reports to the run; after the run, the evaluator itself marks the
// last checkpoint.
TEST_F(Images, AnEvaluatorTellsTheRunWhichCheckpointIsTheBest) {
  const std::string out = folder_.path("out");
  const Words settings = {"--units", "1", "--batch", "20", "--data", data()};
  const Words of_run = {"--out", out, "--save-every", "5", "--keep-best", "precision/valid:max"};
  run(join({{"train", "resnet", "--steps", "20", "--threads", "1", "--ps", "1", "--workers", "1",
             "--evaluator"},
            of_run,
            settings}));
  const json mark = json::parse(read_text(out + "/checkpoints/best.json"));
  EXPECT_TRUE(mark.contains("step")) << mark;
  std::filesystem::remove(out + "/checkpoints/best.json");
  std::ofstream(out + "/checkpoints/best.json")
      << R"({"version":1,"name":"loss/valid","best":"min"})";
  run(join({{"eval", "resnet", "--once", "--out", out}, settings}));
  EXPECT_EQ(json::parse(read_text(out + "/checkpoints/best.json"))["step"], 20);
}

TEST_F(Images, ABestCheckpointByANumberThatIsNotGivenIsRefused) {
  const auto refusal = [&](const std::string& model, const std::string& by) {
    return run_paceline(
               {"train", model, "--steps", "1", "--out", folder_.path("out"), "--keep-best", by})
        .output;
  };
  EXPECT_THAT(refusal("cifar10", "loss/vald"),
              HasSubstr("--keep-best loss/vald: cifar10 gives no such number, but loss/valid, "
                        "precision/valid; did you mean 'loss/valid'?"));
  EXPECT_THAT(refusal("mlp", "loss"), HasSubstr("mlp evaluates nothing by which"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("out")));
  EXPECT_THAT(run_paceline({"eval", "cifar10", "--out", data() + ":best", "--data", data()}).output,
              HasSubstr("--keep-best NAME"));
}

TEST_F(Images, AnEvaluationPassesOverACorruptCheckpointAndSaysIt) {
  const Words cut =
      train("resnet", {"--units", "1", "--out", folder_.path("out"), "--set", "evaluate_every=0"});
  run(join({cut, {"--steps", "2"}}));
  run(join({cut, {"--steps", "4", "--resume"}}));
  const std::string newest = folder_.path("out") + "/checkpoints/step-4";
  const std::string shard = newest + "/shard-0-of-1.safetensors";
  std::string bytes = read_text(shard);
  bytes.back() = char(~bytes.back());
  std::ofstream(shard, std::ios::binary) << bytes;
  const Words once = {"eval", "resnet", "--units",           "1",     "--batch", "20", "--data",
                      data(), "--out",  folder_.path("out"), "--once"};
  for (int i = 0; i < 2; ++i) {  // the first command changes nothing
    EXPECT_THAT(run(once), AllOf(HasSubstr("passes over a checkpoint that is not whole: " + newest),
                                 HasSubstr("step 2: loss ")));
  }
}

TEST_F(Images, AnEvaluatorEvaluatesTheCheckpointsOfAJobInPlaceOfTheChief) {
  const std::string output = run(train("cifar10", {"--steps",
                                                   "40",
                                                   "--ps",
                                                   "1",
                                                   "--workers",
                                                   "2",
                                                   "--threads",
                                                   "2",
                                                   "--towers",
                                                   "2",
                                                   "--strategy",
                                                   "sync",
                                                   "--wire",
                                                   "bfloat16",
                                                   "--reconnect-timeout",
                                                   "20",
                                                   "--out",
                                                   folder_.path("out"),
                                                   "--save-every",
                                                   "10",
                                                   "--evaluator"}));
  EXPECT_THAT(output, ContainsRegex("evaluator:0 +evaluates the checkpoints\n"));
  EXPECT_THAT(output, ContainsRegex("evaluator:0 \\| step [0-9]+: loss [0-9.]+, precision "));
  EXPECT_THAT(output,
              ContainsRegex("evaluator:0 \\| precision 0\\.[0-9]{4}, best 0\\.[0-9]{4} at"));
  EXPECT_EQ(output.find("worker:0    | precision"), std::string::npos) << output;
  EXPECT_TRUE(std::filesystem::exists(folder_.path("out") + "/summaries/evaluator"));
}

TEST_F(Images, AnEvaluatorMayBeStartedBeforeItsJobAndEndsWithIt) {
  const Words of_job = {"--out", folder_.path("out"), "--threads", "1"};
  Process evaluator(
      paceline_words(train("resnet", join({{"--units", "1", "--task", "evaluator"}, of_job}))));
  ASSERT_TRUE(evaluator.wait_for("s for a run that writes to", std::chrono::seconds(120)));
  run(train("resnet",
            join({{"--units", "1", "--steps", "6", "--set", "evaluate_every=0"}, of_job})));
  EXPECT_EQ(evaluator.wait_exit(std::chrono::seconds(120)), 0) << evaluator.output();
  EXPECT_THAT(evaluator.output(), HasSubstr("step 6: loss "));
  EXPECT_THAT(evaluator.output(),
              ContainsRegex("precision 0\\.[0-9]{4}, best 0\\.[0-9]{4} at step 6"));
}

TEST_F(Images, AnEvaluatorSaysWhatItLacks) {
  const Finished no_folder = run_paceline({"train", "cifar10", "--task", "evaluator"});
  EXPECT_EQ(no_folder.status, 2) << no_folder.output;
  EXPECT_THAT(no_folder.output, HasSubstr("--out DIR is missing: an evaluator reads"));
  const Finished no_evaluation = run_paceline(
      {"train", "mlp", "--ps", "1", "--workers", "1", "--out", folder_.path("out"), "--evaluator"});
  EXPECT_EQ(no_evaluation.status, 2) << no_evaluation.output;
  EXPECT_THAT(no_evaluation.output, HasSubstr("this program evaluates no checkpoints"));
}

TEST_F(Images, AFolderWithoutACheckpointCannotBeEvaluated) {
  std::filesystem::create_directory(folder_.path("empty"));
  const Finished refused =
      run_paceline({"eval", "resnet", "--data", data(), "--out", folder_.path("empty"), "--once"});
  EXPECT_EQ(refused.status, 1) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("there is no whole checkpoint in"));
}

TEST_F(Images, AFolderThatIsNotThereIsNamedBeforeAnythingStarts) {
  const Finished refused = run_paceline({"train", "resnet", "--data", folder_.path("nowhere")});
  EXPECT_EQ(refused.status, 2) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("--data " + folder_.path("nowhere")));
}

}  // namespace
}  // namespace paceline::testing
