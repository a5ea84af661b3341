// Tests the event files of a run, as we read them, and as Python's tensorboard reads them.
// $PACELINE_PYTHON names the interpreter; the default is python3.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>

#include "run/report/report.h"
#include "summary/event_folder.h"
#include "summary/event_writer.h"
#include "tests/process.h"

namespace paceline::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

Finished run_program(const std::vector<std::string>& words) {
  Process process(words);
  const int status = process.wait_exit(std::chrono::seconds(120));
  return {status, process.output()};
}

Finished run_python(const std::string& script) {
  const char* chosen = std::getenv("PACELINE_PYTHON");
  return run_program({"/usr/bin/env", chosen != nullptr ? chosen : "python3", "-c", script});
}

class SummariesOfARun : public ::testing::Test {
 protected:
  std::vector<std::string> arguments(const std::vector<std::string>& flags) const {
    std::vector<std::string> all = {"train", "mlp", "--hidden", "8", "--out", out_};
    all.insert(all.end(), flags.begin(), flags.end());
    return all;
  }
  void train(const std::vector<std::string>& flags) const {
    const Finished run = run_paceline(arguments(flags));
    ASSERT_EQ(run.status, 0) << run.output;
  }
  static std::vector<std::int64_t> steps(const TaskSummaries& task, const std::string& tag) {
    std::vector<std::int64_t> steps;
    for (const SummaryPoint& point : task.numbers.at(tag)) steps.push_back(point.step);
    return steps;
  }
  static std::set<std::string> tags(const TaskSummaries& task) {
    std::set<std::string> tags;
    for (const auto& [tag, points] : task.numbers) tags.insert(tag);
    return tags;
  }

  const TemporaryFolder folder_;
  const std::string out_ = folder_.path("out");
};

TEST_F(SummariesOfARun, AreWrittenEverySoManySteps) {
  train({"--steps", "25", "--summary-every", "10"});
  const auto tasks = read_summaries(out_);
  ASSERT_EQ(tasks.size(), 1U);
  EXPECT_EQ(tasks[0].task, "worker:0");
  EXPECT_THAT(tags(tasks[0]),
              IsSupersetOf({"loss", "learning_rate", "speed/steps_per_s", "speed/examples_per_s",
                            "share/compute", "share/other"}));
  EXPECT_THAT(steps(tasks[0], "loss"), ElementsAre(10, 20, 25));
  EXPECT_NEAR(tasks[0].numbers.at("learning_rate")[0].value, 1e-4, 1e-9);
  double shares = 0;
  for (const auto& [tag, points] : tasks[0].numbers) {
    if (tag.starts_with("share/")) shares += points[1].value;
  }
  EXPECT_NEAR(shares, 1, 1e-3);
}

TEST_F(SummariesOfARun, HaveThePerplexityOfEveryStep) {
  const std::string text = folder_.path("text");
  ASSERT_EQ(run_paceline({"data", "corpus", "--out", text, "--words", "20000"}).status, 0);
  const Finished run = run_paceline({"train", "ptb", "--size", "test", "--data", text, "--steps",
                                     "3", "--out", out_, "--summary-every", "1"});
  ASSERT_EQ(run.status, 0) << run.output;
  const TaskSummaries task = read_summaries(out_)[0];
  EXPECT_THAT(steps(task, "perplexity"), ElementsAre(1, 2, 3));
  for (const SummaryPoint& point : task.numbers.at("perplexity")) EXPECT_GT(point.value, 1);
}

TEST_F(SummariesOfARun, HaveAFolderForEachTask) {
  train_until_all_have_stepped(
      arguments({"--ps", "1", "--workers", "2", "--summary-every", "0.001s"}), 2);
  const auto tasks = read_summaries(out_);
  ASSERT_EQ(tasks.size(), 3U);
  EXPECT_EQ(tasks[0].task, "ps:0");
  for (const int worker : {1, 2}) EXPECT_FALSE(tasks[worker].numbers.at("loss").empty());
}

TEST_F(SummariesOfARun, OfAPsSayWhatItsThreadsDid) {
  train({"--steps", "30", "--ps", "1", "--workers", "1", "--summary-every", "10"});
  const TaskSummaries ps = read_summaries(out_)[0];
  ASSERT_EQ(ps.task, "ps:0");
  EXPECT_THAT(tags(ps),
              ElementsAre("share/apply", "share/idle", "share/queue", "speed/steps_per_s",
                          "use/cores", "use/received_bytes_per_s", "use/sent_bytes_per_s"));
  double shares = 0;
  for (const auto& [tag, points] : ps.numbers) {
    EXPECT_EQ(points.back().step, 30) << tag;
    if (tag.starts_with("share/")) shares += points.back().value;
  }
  EXPECT_NEAR(shares, 1, 1e-3);
}

TEST_F(SummariesOfARun, SayThatASingleWorkerIsNeverStale) {
  train({"--steps", "30", "--ps", "1", "--workers", "1", "--summary-every", "10"});
  const std::vector<SummaryPoint> points = read_summaries(out_)[1].numbers.at("staleness");
  ASSERT_EQ(points.size(), 3U);
  for (const SummaryPoint& point : points) EXPECT_EQ(point.value, 0);
  EXPECT_EQ(read_report(out_ + "/report.json").tasks[0].staleness_mean, 0);
  const Finished drawn = run_paceline({"plot", out_, "--out", "/dev/stdout"});
  EXPECT_EQ(drawn.status, 0);
  EXPECT_THAT(drawn.output, HasSubstr("staleness, updates"));
}

TEST_F(SummariesOfARun, AreNoReasonToStop) {
  std::filesystem::create_directories(out_);
  std::ofstream(out_ + "/summaries") << "a file where a folder should be";
  const Finished run =
      run_paceline({"train", "mlp", "--hidden", "8", "--steps", "30", "--out", out_});
  EXPECT_EQ(run.status, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("training goes on without these summaries"));
}

TEST_F(SummariesOfARun, ChangeNoBitOfTheTraining) {
  const std::vector<std::string> train = {"train", "mlp",       "--hidden", "512",     "--steps",
                                          "40",    "--threads", "1",        "--report"};
  const auto last_loss = [&](const std::string& report, std::vector<std::string> more) {
    std::vector<std::string> arguments = train;
    arguments.push_back(folder_.path(report));
    arguments.insert(arguments.end(), more.begin(), more.end());
    EXPECT_EQ(run_paceline(arguments).status, 0);
    std::ifstream file(folder_.path(report));
    const std::string text(std::istreambuf_iterator<char>(file), {});
    return text.substr(text.find("\"last\""), 40);
  };
  const std::string without = last_loss("without.json", {});
  EXPECT_EQ(last_loss("with.json", {"--out", out_, "--summary-every", "1"}), without);
  EXPECT_EQ(last_loss("of.json", {"--out", folder_.path("of"), "--summary-every", "2",
                                  "--summary-of", "gradients,activations,images"}),
            without);
}

TEST_F(SummariesOfARun, OfImagesAreMissingWhereTheModelTakesNone) {
  const Finished mlp = run_paceline(arguments({"--steps", "1", "--summary-of", "images"}));
  EXPECT_EQ(mlp.status, 0);
  EXPECT_THAT(mlp.output, HasSubstr("--summary-of images: no input of the model has the shape"));
  const Finished cifar10 =
      run_paceline({"train", "cifar10", "--batch", "2", "--steps", "1", "--out",
                    folder_.path("cifar10"), "--summary-of", "images"});
  EXPECT_EQ(cifar10.status, 0);
  EXPECT_THAT(cifar10.output, Not(HasSubstr("--summary-of images")));
}

TEST_F(SummariesOfARun, AreOpenedByTensorBoard) {
  if (const Finished has = run_python("import tensorboard"); has.status != 0) {
    GTEST_SKIP() << "Python has no package tensorboard: " << has.output;
  }
  train({"--steps", "25", "--summary-every", "10"});
  train({"--steps", "35", "--summary-every", "10", "--resume"});
  const Finished run = run_python(fmt::format(R"(
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator('{}/summaries/worker:0', {{'histograms': 0, 'graph': 1}}).Reload()
tags = events.Tags()
print('scalars', sorted(tags['scalars']))
print('histograms', sorted(tags['histograms']))
for event in events.Scalars('loss'): print('loss', event.step, repr(event.value))
for event in events.Histograms('variables/layer1/w'):
  print('histogram', event.step, event.histogram_value.num, sum(event.histogram_value.bucket))
for node in events.Graph().node:
  if node.op == 'variable': print('node', node.name, node.op)
)",
                                              out_));
  ASSERT_EQ(run.status, 0) << run.output;
  std::string expected = "scalars [";
  const TaskSummaries task = read_summaries(out_)[0];
  for (const std::string& tag : tags(task)) {
    expected += (expected.ends_with('[') ? "'" : ", '") + tag + "'";
  }
  EXPECT_THAT(run.output, HasSubstr(expected + "]"));
  EXPECT_THAT(run.output, HasSubstr("'variables/layer1/b', 'variables/layer1/w'"));
  for (const SummaryPoint& point : task.numbers.at("loss")) {
    EXPECT_THAT(run.output, HasSubstr(fmt::format("loss {} {}", point.step, point.value)));
  }
  EXPECT_THAT(run.output, HasSubstr("histogram 10 2048.0 2048.0"));  // 256 × 8
  EXPECT_THAT(run.output, HasSubstr("histogram 25 2048.0 2048.0"));
  EXPECT_THAT(run.output, HasSubstr("node layer1/w variable"));
  for (const char* warning : {"file_version", "more than one graph", "out-of-order"}) {
    EXPECT_THAT(run.output, Not(HasSubstr(warning)));
  }
}

// TensorBoard reads gradients, activations and images, from one process and from a cluster.
TEST_F(SummariesOfARun, OfOneStepAreOpenedByTensorBoard) {
  if (const Finished has = run_python("import tensorboard"); has.status != 0) {
    GTEST_SKIP() << "Python has no package tensorboard: " << has.output;
  }
  const Words model = {"train",           "resnet",
                       "--depth",         "8",
                       "--batch",         "4",
                       "--set",           "evaluate_every=0",
                       "--steps",         "12",
                       "--summary-every", "5",
                       "--summary-of",    "gradients,activations,images"};
  const std::vector<Words> jobs = {{}, {"--ps", "1", "--workers", "1"}, {"--towers", "2"}};
  for (const Words& job : jobs) {
    const std::string out =
        folder_.path("of" + std::to_string(job.size()) + (job.empty() ? "" : job[0]));
    const Finished trained = run_paceline(join({model, {"--out", out}, job}));
    ASSERT_EQ(trained.status, 0) << trained.output;
    const Finished run = run_python(fmt::format(R"(
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator('{}/summaries/worker:0', {{'histograms': 0, 'images': 0}}).Reload()
tags = events.Tags()
print('activations', len([t for t in tags['histograms'] if t.startswith('activations/')]) > 10)
for event in events.Histograms('gradients/dense/w'):
  print('gradient', event.step, event.histogram_value.num)
norms = {{e.step: e.value for e in events.Scalars('gradient_norm/dense/w')}}
for event in events.Histograms('gradients/dense/w'):
  print('norm', abs(norms[event.step] ** 2 - event.histogram_value.sum_squares) < 1e-4 * norms[event.step] ** 2)
print('images', sorted(tags['images']))
for image in events.Images('images/images/2'):
  print('image', image.step, image.height, image.width, image.encoded_image_string[:4])
)",
                                                out));
    ASSERT_EQ(run.status, 0) << run.output;
    for (const char* there :
         {"activations True", "gradient 1 640.0", "gradient 5 640.0", "gradient 10 640.0",
          "norm True", "images ['images/images/0', 'images/images/1', 'images/images/2']",
          "image 10 32 32 b'\\x89PNG'"}) {
      EXPECT_THAT(run.output, HasSubstr(there));
    }
    EXPECT_THAT(run.output, Not(HasSubstr("norm False")));
    EXPECT_THAT(run.output, Not(HasSubstr("gradient 2 ")));
  }
}

// The gradients include those of variables that are read by rows, no matter which task computes the
// norm.
TEST_F(SummariesOfARun, OfAllGradientsHaveTheNormThatIsClipped) {
  const std::string text = folder_.path("text");
  ASSERT_EQ(run_paceline({"data", "corpus", "--out", text, "--words", "20000"}).status, 0);
  const std::vector<Words> jobs = {{}, {"--ps", "1", "--workers", "1"}};
  for (const Words& job : jobs) {
    const std::string out = folder_.path("of" + std::to_string(job.size()));
    const Finished run = run_paceline(
        join({{"train", "ptb", "--data", text, "--set", "hidden=8", "--batch", "4", "--steps", "10",
               "--out", out, "--summary-every", "5", "--summary-of", "gradients"},
              job}));
    ASSERT_EQ(run.status, 0) << run.output;
    const std::vector<TaskSummaries> tasks = read_summaries(out);
    const auto& worker = *std::ranges::find(tasks, "worker:0", &TaskSummaries::task);
    EXPECT_THAT(steps(worker, "gradient_norm"), ElementsAre(1, 5, 10));
    EXPECT_TRUE(worker.numbers.contains("gradient_norm/embedding"));
    const auto& clipped = worker.numbers.at("global_norm");
    for (std::size_t i = 0; i < clipped.size(); ++i) {
      const SummaryPoint& seen = worker.numbers.at("gradient_norm")[i + 1];
      EXPECT_NEAR(seen.value, clipped[i].value, 1e-4 * clipped[i].value) << seen.step;
    }
  }
}

TEST_F(SummariesOfARun, OfGradientsAreThoseOfUpdatesThatAreNotFused) {
  const auto norms = [&](const std::string& out, const Words& how) {
    EXPECT_EQ(run_paceline(join({{"train", "mlp", "--hidden", "512", "--threads", "1", "--steps",
                                  "6", "--summary-every", "2", "--summary-of", "gradients", "--out",
                                  folder_.path(out)},
                                 how}))
                  .status,
              0);
    std::vector<double> norms;
    const TaskSummaries worker = read_summaries(folder_.path(out))[0];
    for (const SummaryPoint& point : worker.numbers.at("gradient_norm/layer2/w")) {
      norms.push_back(point.value);
    }
    return norms;
  };
  const std::vector<double> fused = norms("fused", {});
  EXPECT_EQ(fused.size(), 4U);
  EXPECT_EQ(fused, norms("apart", {"--no-fused-update"}));
}

TEST_F(SummariesOfARun, AreDrawnThoughAPanelHasNoFiniteValue) {
  if (run_program({"/usr/bin/env", "gnuplot", "--version"}).status != 0) {
    GTEST_SKIP() << "there is no gnuplot (Debian: gnuplot-nox)";
  }
  std::filesystem::create_directories(out_);
  {
    EventWriter writer(out_ + "/summaries/worker:0", 0);
    for (const int step : {1, 2}) {
      writer.add({.step = step,
                  .values = {{"loss", step == 1 ? std::numeric_limits<float>::infinity()
                                                : std::numeric_limits<float>::quiet_NaN()},
                             {"speed/examples_per_s", float(step)}}});
    }
  }
  const std::string svg = folder_.path("diverged.svg");
  const Finished drawn = run_paceline({"plot", out_, "--out", svg});
  EXPECT_EQ(drawn.status, 0) << drawn.output;
  std::ifstream file(svg);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  for (const char* there : {"loss", "no value is finite", "examples/s"}) {
    EXPECT_THAT(text, HasSubstr(there));
  }
}

TEST_F(SummariesOfARun, AreDrawn) {
  if (run_program({"/usr/bin/env", "gnuplot", "--version"}).status != 0) {
    GTEST_SKIP() << "there is no gnuplot (Debian: gnuplot-nox)";
  }
  train({"--steps", "30", "--summary-every", "5"});
  const std::string svg = folder_.path("a'b.svg"), png = folder_.path("c.png");
  const std::string temporary = folder_.path("a'b");  // nothing is put there
  std::filesystem::create_directory(temporary);
  std::vector<std::string> words = {"/usr/bin/env", "TMPDIR=" + temporary};
  for (const std::string& argument : paceline_words({"plot", out_, "--out", svg})) {
    words.push_back(argument);
  }
  const Finished drawn = run_program(words);
  ASSERT_EQ(drawn.status, 0) << drawn.output;
  EXPECT_TRUE(std::filesystem::is_empty(temporary));
  std::ifstream file(svg);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  for (const char* there : {"<svg", "loss", "examples/s", "global step", "compute"}) {
    EXPECT_THAT(text, HasSubstr(there));
  }
  EXPECT_EQ(run_paceline({"plot", out_, "--out", png, out_ + "/summaries"}).status, 0);
  EXPECT_GT(std::filesystem::file_size(png), 1000U);
  const std::string smooth = folder_.path("smooth.svg");
  EXPECT_EQ(
      run_paceline({"plot", out_, "--out", smooth, "--smooth", "3", "--title", "One run"}).status,
      0);
  std::ifstream smooth_file(smooth);
  const std::string smooth_text(std::istreambuf_iterator<char>(smooth_file), {});
  EXPECT_THAT(smooth_text, HasSubstr("One run"));
  EXPECT_THAT(text, HasSubstr(">" + out_ + "<"));
  const std::string link = folder_.path("link.png");
  std::filesystem::create_symlink("d.png", link);
  EXPECT_EQ(run_paceline({"plot", out_, "--out", link}).status, 0);
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_GT(std::filesystem::file_size(folder_.path("d.png")), 1000U);
  const Finished printed = run_paceline({"plot", out_, "--out", "/dev/stdout"});
  EXPECT_EQ(printed.status, 0);
  EXPECT_THAT(printed.output, HasSubstr("</svg>"));
  const std::string full = folder_.path("full.svg");
  std::filesystem::create_symlink("/dev/full", full + ".part");
  const Finished no_room = run_paceline({"plot", out_, "--out", full});
  EXPECT_EQ(no_room.status, 1);
  EXPECT_THAT(no_room.output, HasSubstr("No space left on device"));
  EXPECT_FALSE(std::filesystem::exists(full));
}

/// Draws numbers that a program has written.
class DrawnNumbers : public ::testing::Test {
 protected:
  void SetUp() override {
    if (run_program({"/usr/bin/env", "gnuplot", "--version"}).status != 0) {
      GTEST_SKIP() << "there is no gnuplot (Debian: gnuplot-nox)";
    }
  }
  void write(const std::string& run, const std::vector<std::string>& tags,
             const std::vector<std::int64_t>& steps) const {
    EventWriter writer(folder_.path(run) + "/summaries/worker:0", 0);
    for (const std::int64_t step : steps) {
      for (const std::string& tag : tags)
        writer.add({.step = step, .values = {{tag, float(step)}}});
    }
  }
  std::string draw(const std::vector<std::string>& runs) const {
    std::vector<std::string> words = {"plot", "--out", "/dev/stdout"};
    for (const std::string& run : runs) words.push_back(folder_.path(run));
    const Finished drawn = run_paceline(words);
    EXPECT_EQ(drawn.status, 0) << drawn.output;
    return drawn.output;
  }
  static std::size_t count(const std::string& text, const std::string& word) {
    std::size_t found = 0;
    for (std::size_t at = 0; (at = text.find(word, at)) != text.npos; ++at) ++found;
    return found;
  }
  const TemporaryFolder folder_;
};

TEST_F(DrawnNumbers, AreAllThatTheProgramWrote) {
  write("alone", {"loss"}, {1, 2, 3});
  EXPECT_EQ(count(draw({"alone"}), ">valid<"), 0U);
  write("run", {"loss", "loss/valid", "accuracy/top5"}, {1, 2, 3});
  const std::string all = draw({"run"});
  EXPECT_EQ(count(all, ">valid<"), 1U);
  EXPECT_EQ(count(all, ">accuracy<"), 1U);
  EXPECT_EQ(count(all, ">top5<"), 1U);
}

TEST_F(DrawnNumbers, AreNamedByWhatTellsRunsApart) {
  for (const char* run : {"deep/folder/one", "deep/folder/other"}) write(run, {"loss"}, {1, 2, 3});
  const std::string both = draw({"deep/folder/one", "deep/folder/other"});
  EXPECT_EQ(count(both, ">one<"), 1U);
  EXPECT_EQ(count(both, ">other<"), 1U);
  EXPECT_EQ(count(both, "deep/folder"), 2U) << "in the title";
}

TEST_F(DrawnNumbers, DoNotCrossAGap) {
  std::vector<std::int64_t> steps;
  for (std::int64_t i = 0; i < 20; ++i) steps.push_back(10 * i);
  write("whole", {"loss"}, steps);
  for (std::int64_t i = 0; i < 20; ++i) steps[std::size_t(i)] += i < 10 ? 0 : 500;
  write("gap", {"loss"}, steps);
  // In SVG, each piece of a curve begins with a move.
  const auto pieces_of = [](const std::string& picture) {
    return count(picture.substr(picture.find("<g id=\"gnuplot_plot_1")), "M");
  };
  const std::size_t whole = pieces_of(draw({"whole"}));
  EXPECT_EQ(pieces_of(draw({"gap"})), whole + 1);
}

TEST_F(SummariesOfARun, ThatCannotBeDrawnSayWhy) {
  const Finished nothing = run_paceline({"plot", folder_.path("none"), "--out", "x.svg"});
  EXPECT_EQ(nothing.status, 1);
  EXPECT_THAT(nothing.output, HasSubstr("none: no event files"));
  const Finished format = run_paceline({"plot", out_, "--out", "x.jpg"});
  EXPECT_EQ(format.status, 2);
  EXPECT_THAT(format.output, HasSubstr("--out x.jpg: must end with .svg or .png"));
  const Finished nowhere = run_paceline({"plot", out_, "--out", "/nonexistent/x.svg"});
  EXPECT_EQ(nowhere.status, 2);
  EXPECT_THAT(nowhere.output, HasSubstr("--out /nonexistent/x.svg: there is no folder"));
  train({"--steps", "12"});
  std::vector<std::string> words = {"/usr/bin/env", "PATH=/nonexistent"};
  for (const std::string& argument : paceline_words({"plot", out_, "--out", "x.svg"})) {
    words.push_back(argument);
  }
  const Finished missing = run_program(words);
  EXPECT_EQ(missing.status, 1);
  EXPECT_THAT(missing.output, HasSubstr("apt-get install gnuplot-nox"));
}

}  // namespace
}  // namespace paceline::testing
