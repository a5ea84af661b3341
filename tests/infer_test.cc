// Tests `paceline infer`, which prints the results of a run's checkpoint for new data.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/process.h"

namespace paceline::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

class Infer : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path(name); }
  std::string run(const Words& words, int status = 0) const {
    const Finished finished = run_paceline(words);
    EXPECT_EQ(finished.status, status) << finished.output;
    return finished.output;
  }
  static std::vector<std::string> lines(const std::string& text) {
    std::istringstream stream(text);
    std::vector<std::string> found;
    for (std::string line; std::getline(stream, line);) found.push_back(line);
    return found;
  }
  std::vector<std::string> lines_of(const std::string& file) const {
    std::ifstream stream(file);
    return lines({std::istreambuf_iterator<char>(stream), {}});
  }
  /// Trains a small ResNet on generated images; a file beside them has the names of their classes.
  void train(const Words& more = {}) {
    run({"data", "images", "--out", path("data"), "--count", "60"});
    std::ofstream names(path("data/batches.meta.txt"));
    for (int i = 0; i < 10; ++i) names << "kind-" << i << '\n';
    names.close();
    run(join({{"train", "resnet", "--units", "1", "--data", path("data"), "--batch", "10",
               "--steps", "4", "--out", path("run")},
              more}));
  }

  TemporaryFolder folder_;
};

TEST_F(Infer, NamesTheClassOfEachImage) {
  train();
  const Words infer = {"infer", "resnet", "--out", path("run"), "--data"};
  const auto csv = lines(run(join({infer, {path("data/test_batch.bin")}})));
  ASSERT_EQ(csv.size(), 13u);
  EXPECT_EQ(csv[0], "file,class,probability");
  EXPECT_THAT(csv[12], MatchesRegex("\".*test_batch.bin, record 11\",kind-[0-9],0\\.[0-9]+"));
  const std::string file = path("results.jsonl");
  EXPECT_EQ(
      run(join(
          {infer, {path("data/test_batch.bin"), "--top", "3", "--format", "jsonl", "--to", file}})),
      "");
  const auto json = lines_of(file);
  ASSERT_EQ(json.size(), 12u);
  const auto first = nlohmann::json::parse(json[0]);
  EXPECT_THAT(std::string(first["class3"]), HasSubstr("kind-"));
  EXPECT_GE(double(first["probability2"]), double(first["probability3"]));
  EXPECT_EQ(csv[1], "\"" + std::string(first["file"]) + "\"," + std::string(first["class"]) + "," +
                        csv[1].substr(csv[1].rfind(',') + 1));
}

TEST_F(Infer, TakesARunOfAClusterAndAFileOfVariables) {
  train({"--ps", "1", "--workers", "2"});
  const std::string data = path("data/test_batch.bin");
  const std::string results = run({"infer", "resnet", "--out", path("run"), "--data", data});
  EXPECT_EQ(lines(results).size(), 13u);
  run({"export", path("run"), path("m.safetensors")});
  const Words lone = {"infer", "resnet", "--out", path("m.safetensors"), "--data", data};
  EXPECT_THAT(run(lone, 1), HasSubstr("only in the model"));
  const auto by_file = lines(run(join({lone, {"--set", "units=1"}})));
  ASSERT_EQ(by_file.size(), 13u);
  // A file of variables has no names of classes.
  EXPECT_THAT(by_file[1], MatchesRegex(".*,[0-9],0\\.[0-9]+"));
}

TEST_F(Infer, GivesThePerplexityOfLines) {
  const std::string text = "a b c d\nb c <unk>\n";
  for (const char* name : {"ptb.train.txt", "ptb.valid.txt", "ptb.test.txt"}) {
    std::ofstream file(path(name));
    for (int i = 0; i < 30; ++i) file << text;
  }
  run({"train", "ptb", "--size", "test", "--data", folder_.path(), "--batch", "2", "--set",
       "hidden=4", "--out", path("run"), "--keep-best", "perplexity/valid"});
  std::ofstream(path("new.txt")) << "a b\nb x\n";
  const auto csv =
      lines(run({"infer", "ptb", "--out", path("run:best"), "--data", path("new.txt")}));
  ASSERT_EQ(csv.size(), 3u);
  EXPECT_EQ(csv[0], "line,perplexity,words,unknown");
  EXPECT_THAT(csv[1], MatchesRegex("1,[0-9.]+,2,0"));
  EXPECT_THAT(csv[2], MatchesRegex("2,[0-9.]+,2,1"));
}

TEST_F(Infer, NamesTheFlagThatIsWrong) {
  train();
  const std::string data = path("data/test_batch.bin");
  EXPECT_THAT(run({"infer"}, 2), HasSubstr("the model is missing: paceline infer MODEL"));
  EXPECT_THAT(run({"infer", "--help"}), HasSubstr("MODEL is one of ptb, cifar10, resnet"));
  EXPECT_THAT(run({"infer", "mlp"}, 2),
              HasSubstr("mlp computes on noise, and has nothing to infer"));
  EXPECT_THAT(run({"infer", "resnet", "--data", data}, 2), HasSubstr("--out is missing"));
  EXPECT_THAT(run({"infer", "resnet", "--out", path("run")}, 2), HasSubstr("--data is missing"));
  EXPECT_THAT(run({"infer", "cifar10", "--out", path("run"), "--data", data}, 2),
              HasSubstr("is a checkpoint of resnet, not of cifar10"));
  EXPECT_THAT(run({"infer", "resnet", "--out", path("none"), "--data", data}, 2),
              HasSubstr("--out " + path("none")));
  const Words infer = {"infer", "resnet", "--out", path("run"), "--data", data};
  EXPECT_THAT(run(join({infer, {"--format", "xml"}}), 2), HasSubstr("--format xml"));
  EXPECT_THAT(run(join({infer, {"--top", "11"}}), 2), HasSubstr("--top 11: the model knows 10"));
  EXPECT_THAT(run(join({infer, {"--to", path("no/where")}}), 2), HasSubstr("--to "));
  EXPECT_THAT(
      run({"infer", "resnet", "--help"}),
      AllOf(HasSubstr("--top K"), HasSubstr("RUN:best"), HasSubstr("csv|jsonl"),
            HasSubstr("paceline infer resnet --out run --data new"),
            HasSubstr("paceline train resnet --help lists them"), Not(HasSubstr("--batch B"))));
}

}  // namespace
}  // namespace paceline::testing
