// Tests that a model's inference with a run's checkpoint gives the results that the run's
// evaluation sees.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/temporary_folder.h"
#include "base/testing/error_of.h"
#include "models/model.h"
#include "models/ptb_config.h"
#include "models/ptb_graph.h"
#include "paceline/data.h"
#include "paceline/session.h"
#include "paceline/zoo_data.h"

namespace paceline::models {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class InferenceTest : public ::testing::Test {
 protected:
  InferenceTest() {
    run_.quiet = true;
    run_.out = folder_.path("run");
    run_.steps = 3;
    run_.save_every = Interval();
    cluster_.threads = 1;
  }

  /// Writes grey images of different sizes; those of the class "light" are lighter.
  void write_images(const std::string& name) {
    for (int i = 0; i < 12; ++i) {
      const std::int64_t height = 30 + i, width = 40;
      std::vector<std::uint8_t> pixels(std::size_t(height * width * 3));
      for (std::size_t p = 0; p < pixels.size(); ++p) {
        pixels[p] = std::uint8_t((i % 2 == 0 ? 40 : 200) + p % std::size_t(7 + i));
      }
      const auto path = std::filesystem::path(folder_.path(name)) /
                        (i % 2 == 0 ? "dark" : "light") / (std::to_string(100 + i) + ".png");
      std::filesystem::create_directories(path.parent_path());
      write_png(path.string(), pixels, height, width);
    }
  }
  void train(const Model& model, const std::map<std::string, std::string>& set) {
    settings_ = model.settings(set);
    run_.settings = settings_.all_given();
    model.run(cluster_, run_, settings_);
  }
  std::vector<InferenceRow> infer(const Model& model, const std::string& data,
                                  std::int64_t top = 1) const {
    std::vector<InferenceRow> rows;
    model.infer({.saved = saved_model(run_.out),
                 .data = data,
                 .top = top,
                 .give = [&](const InferenceRow& row) { rows.push_back(row); }},
                settings_);
    return rows;
  }
  std::string refusal(ErrorCode code, const Model& model, const std::string& data,
                      std::int64_t top = 1) const {
    return error_of(code, [&] { infer(model, data, top); });
  }

  const TemporaryFolder folder_;
  Cluster cluster_;
  RunOptions run_;
  Settings settings_;
};

std::vector<std::string> columns(const InferenceRow& row) {
  std::vector<std::string> names;
  for (const auto& [name, value] : row) names.push_back(name);
  return names;
}
std::string text(const InferenceRow& row, std::size_t i) {
  return std::get<std::string>(row.at(i).second);
}
double number(const InferenceRow& row, std::size_t i) { return std::get<double>(row.at(i).second); }

class ImageInferenceTest : public InferenceTest,
                           public ::testing::WithParamInterface<
                               std::pair<const char*, std::map<std::string, std::string>>> {};

TEST_P(ImageInferenceTest, NamesTheClassesThatAnEvaluationCounts) {
  write_images("data/train");
  write_images("data/test");
  const Model& model = *find_model(GetParam().first);
  std::map<std::string, std::string> set = GetParam().second;
  set["data"] = folder_.path("data");
  train(model, set);
  const std::vector<InferenceRow> rows = infer(model, folder_.path("data/test"));
  ASSERT_EQ(rows.size(), 12u);
  int right = 0;
  for (const InferenceRow& row : rows) {
    EXPECT_THAT(columns(row), ElementsAre("file", "class", "probability"));
    EXPECT_GE(number(row, 2), 0.5);
    const std::string folder = std::filesystem::path(text(row, 0)).parent_path().filename();
    right += folder == text(row, 1) ? 1 : 0;
  }
  EXPECT_EQ(text(rows[0], 0), folder_.path("data/test/dark/100.png"));
  RunOptions run = run_;
  run.resume = true;
  EXPECT_NEAR(model.evaluate(run, settings_).precision, right / 12.0, 1e-6);

  const InferenceRow both = infer(model, folder_.path("data/test/light/101.png"), 2).at(0);
  EXPECT_THAT(columns(both), ElementsAre("file", "class", "probability", "class2", "probability2"));
  EXPECT_NE(text(both, 1), text(both, 3));
  EXPECT_NEAR(number(both, 2) + number(both, 4), 1, 1e-5);
}

INSTANTIATE_TEST_SUITE_P(
    Models, ImageInferenceTest,
    ::testing::Values(std::pair("cifar10", std::map<std::string, std::string>{{"batch", "8"}}),
                      std::pair("cifar10", std::map<std::string, std::string>{{"batch", "8"},
                                                                              {"recipe", "fast"}}),
                      std::pair("resnet", std::map<std::string, std::string>{{"batch", "8"},
                                                                             {"units", "1"}})),
    [](const auto& info) { return std::string(info.param.first) + std::to_string(info.index); });

TEST_F(InferenceTest, NamesClassesOfBinaryFilesByTheFileBesideThem) {
  generate_images(folder_.path(), 20, 1);
  const Model& model = *find_model("cifar10");
  const std::map<std::string, std::string> set = {{"batch", "8"}, {"data", folder_.path()}};
  train(model, set);
  const std::string data = folder_.path("test_batch.bin");
  const InferenceRow numbered = infer(model, data).at(9);
  EXPECT_THAT(text(numbered, 0), HasSubstr("test_batch.bin"));
  EXPECT_EQ(text(numbered, 1).size(), 1u);
  std::ofstream(folder_.path("batches.meta.txt"))
      << "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n";
  run_.out = folder_.path("named");
  train(model, set);
  EXPECT_THAT(saved_model(run_.out).data_names.at("classes"), ::testing::Contains("frog"));
  EXPECT_GT(text(infer(model, data).at(0), 1).size(), 2u);
}

TEST_F(InferenceTest, NamesWhatIsWrongWithImages) {
  write_images("data");
  const Model& model = *find_model("cifar10");
  train(model, {{"batch", "8"}, {"data", folder_.path("data")}});
  EXPECT_THAT(refusal(ErrorCode::kUsage, model, folder_.path("none")),
              AllOf(HasSubstr("--data " + folder_.path("none")), HasSubstr("no file")));
  EXPECT_THAT(refusal(ErrorCode::kUsage, model, folder_.path("data"), 3),
              HasSubstr("--top 3: the model knows 2 classes"));
  std::ofstream(folder_.path("bad.png")) << "no image";
  EXPECT_THAT(refusal(ErrorCode::kDataLoss, model, folder_.path("bad.png")), HasSubstr("bad.png"));
  std::filesystem::create_directory(folder_.path("empty"));
  EXPECT_THAT(refusal(ErrorCode::kUsage, model, folder_.path("empty")),
              HasSubstr("holds no image"));
  const Model& other = *find_model("resnet");
  settings_ = other.settings();
  EXPECT_THAT(refusal(ErrorCode::kFailedPrecondition, other, folder_.path("data")),
              HasSubstr("prepared in another way"));
}

class TextInferenceTest : public InferenceTest {
 protected:
  TextInferenceTest() {
    std::string sentence = "the cat sat on <unk> mat\nthe dog ran\n", words;
    for (int i = 0; i < 20; ++i) words += sentence;
    for (const char* name : {"ptb.train.txt", "ptb.valid.txt", "ptb.test.txt"}) {
      std::ofstream(folder_.path(name)) << words;
    }
    train(model_, {{"data", folder_.path()},
                   {"size", "test"},
                   {"batch", "2"},
                   {"hidden", "5"},
                   {"layers", "2"},
                   {"unroll", "3"},
                   {"learning_rate", "0.5"}});
  }
  /// Returns the perplexity of one line in one step, computed by a session.
  double expected(const std::vector<std::int32_t>& words, std::int32_t end) const {
    Graph graph;
    const PtbConfig config = ptb_config(settings_);
    const auto count = std::int64_t(words.size()) + 1;
    const PtbGraph ptb = build_ptb(graph, config, 1, count, false);
    RunOptions run;
    run.quiet = true;
    Session session(graph, cluster_, run);
    session.begin_evaluation(run_.out);
    const Tensor cost = session.evaluate(ptb.cost, [&](Feed& feed) {
      const auto inputs = feed.data<std::int32_t>(ptb.inputs);
      const auto targets = feed.data<std::int32_t>(ptb.targets);
      inputs[0] = targets[words.size()] = end;
      for (std::size_t i = 0; i < words.size(); ++i) inputs[i + 1] = targets[i] = words[i];
    });
    return std::exp(double(cost.item<float>()) / double(count));
  }

  const Model& model_ = *find_model("ptb");
};

TEST_F(TextInferenceTest, GivesThePerplexityOfEachLine) {
  const std::string path = folder_.path("new.txt");
  {
    std::ofstream file(path);
    file << "the cat ran\n\nthe bird sat on the mat on the cat\n";
    for (int i = 0; i < 20; ++i) file << "dog\n";
  }
  const std::vector<InferenceRow> rows = infer(model_, path);
  ASSERT_EQ(rows.size(), 23u);
  const Vocabulary words = Vocabulary::of(saved_model(run_.out).data_names.at("words"));
  const std::vector<TextLine> lines = words.read_lines(path);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_THAT(columns(rows[i]), ElementsAre("line", "perplexity", "words", "unknown"));
    EXPECT_EQ(std::get<std::int64_t>(rows[i][0].second), std::int64_t(i) + 1);
    EXPECT_NEAR(number(rows[i], 1) / expected(lines[i].ids, words.id("<eos>")), 1, 1e-5) << i;
  }
  EXPECT_EQ(std::get<std::int64_t>(rows[2][2].second), 9);
  EXPECT_EQ(std::get<std::int64_t>(rows[2][3].second), 1);
}

TEST_F(TextInferenceTest, NamesATextThatIsNotThere) {
  EXPECT_THAT(refusal(ErrorCode::kUsage, model_, folder_.path("none.txt")),
              AllOf(HasSubstr("--data "), HasSubstr("none.txt")));
}

TEST(Inference, IsOfModelsThatLearnFromData) {
  for (const Model* model : all_models()) {
    EXPECT_EQ(model->inference().has_value(), model->name() != "mlp" && model->name() != "fetch")
        << model->name();
  }
}

}  // namespace
}  // namespace paceline::models
