// Tests that a program's `infer` prints what its function computes from new data and a checkpoint.
#include "cli/inference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>

#include "base/temporary_folder.h"
#include "paceline/ops.h"
#include "paceline/session.h"

namespace paceline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const Setting<std::int64_t> kPower = {
    .name = "power", .value = 1, .help = "The power", .flag = true};

/// A program whose `infer` multiplies the numbers of a file by a number that a run has learned,
/// raised to a power that is a setting.
class ProgramInference : public ::testing::Test {
 protected:
  ProgramInference() {
    Graph graph;
    const Value x = graph.input("x", {1});
    const Value w = graph.variable("w", {1}, Initializer::constant(3));
    RunOptions run;
    run.quiet = true;
    run.out = folder_.path("run");
    run.steps = 1;
    run.settings = {{"power", "2"}, {"gone", "1"}};
    Session session(minimize(reduce_mean(x * w), Sgd{0}), {}, run);
    session.run([&](Feed& feed) { feed.data<float>(x)[0] = 1; });
  }

  static void infer(const InferenceRequest& request, const Settings& settings) {
    Graph graph;
    const Value x = graph.input("x", {4, 1}), w = graph.variable("w", {1});
    const Value y = mul(x, broadcast_to_rows(w, 4));
    const Predictor predictor(graph, {y}, request.saved.path);
    std::ifstream file(request.data);
    std::string name;
    for (float at = 0; file >> name >> at;) {
      const Tensor made = predictor.predict({{x, Tensor::of<float>({1, 1}, {at})}})[0];
      request.give({{"name", name},
                    {"power", settings[kPower]},
                    {"y", std::pow(double(made.item<float>()), double(settings[kPower]))}});
    }
  }
  static Value broadcast_to_rows(Value w, std::int64_t rows) {
    return reshape(concat(std::vector<Value>(std::size_t(rows), w), 0), {rows, 1});
  }

  int program(std::vector<std::string> words) {
    words.insert(words.begin(), {"/bin/powers", "infer"});
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    const ProgramOptions options = {.about = "Powers.", .settings = {kPower}, .infer = infer};
    const auto work = [](const Cluster&, const RunOptions&, const Settings&) { FAIL(); };
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int status = run_program(int(argv.size()), argv.data(), options, work);
    printed_ = ::testing::internal::GetCapturedStdout();
    errors_ = ::testing::internal::GetCapturedStderr();
    return status;
  }
  std::string data(const std::string& text) {
    std::ofstream(folder_.path("new.txt")) << text;
    return folder_.path("new.txt");
  }

  TemporaryFolder folder_;
  std::string printed_, errors_;
};

TEST_F(ProgramInference, TakesTheSettingsOfTheRun) {
  EXPECT_EQ(program({"--out", folder_.path("run"), "--data", data("a 1\nb 2\n")}), 0) << errors_;
  EXPECT_EQ(printed_, "name,power,y\na,2,9\nb,2,36\n");
  EXPECT_EQ(program({"--out", folder_.path("run"), "--data", data("a 1\n"), "--set", "power=3"}),
            0);
  EXPECT_EQ(printed_, "name,power,y\na,3,27\n");
}

TEST_F(ProgramInference, QuotesCellsAndWritesJsonLines) {
  EXPECT_EQ(program({"--out", folder_.path("run"), "--data", data("a,\"b\" 0.5\n")}), 0);
  EXPECT_EQ(printed_, "name,power,y\n\"a,\"\"b\"\"\",2,2.25\n");
  const std::string file = folder_.path("results");
  EXPECT_EQ(program({"--out", folder_.path("run"), "--data", data("a,\"b\" 0.5\n\xE9 1\n"),
                     "--format", "jsonl", "--to", file}),
            0);
  EXPECT_EQ(printed_, "");
  std::ifstream stream(file);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(stream), {}),
            "{\"name\":\"a,\\\"b\\\"\",\"power\":2,\"y\":2.25}\n"
            "{\"name\":\"\xEF\xBF\xBD\",\"power\":2,\"y\":9.0}\n");
}

TEST_F(ProgramInference, SaysWhatIsWrong) {
  EXPECT_EQ(program({"--data", "x"}), 2);
  EXPECT_THAT(errors_, HasSubstr("--out is missing"));
  EXPECT_EQ(program({"--out", folder_.path("none"), "--data", "x"}), 2);
  EXPECT_THAT(errors_, HasSubstr("--out " + folder_.path("none")));
  EXPECT_EQ(program({"--out", folder_.path("run"), "--data", "x", "--top", "0"}), 2);
  EXPECT_THAT(errors_, HasSubstr("--top 0: must be a whole number from 1"));
  EXPECT_EQ(program({"--help"}), 0);
  EXPECT_THAT(printed_, AllOf(HasSubstr("powers infer --out run:best"), HasSubstr("--top K"),
                              HasSubstr("powers --help lists them")));
}

}  // namespace
}  // namespace paceline
