// Tests the examples, and the program that docs/train-your-own.md writes. Each is a project of its
// own, which is built against an installed Paceline and runs alone and as a cluster.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>

#include "paceline/data.h"
#include "tests/examples.h"
#include "tests/process.h"

namespace paceline::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Returns the file that a comment names: points.h for "// points.h: examples", CMakeLists.txt for
// "# CMakeLists.txt". Empty if the comment names none.
std::string file_named_in(const std::string& comment) {
  std::smatch name;
  const std::regex form("(//|#) ([a-zA-Z_]+\\.[a-z]+)(:.*)?");
  return std::regex_match(comment, name, form) ? name[2].str() : "";
}

/// Writes a file for every block of the page that begins with a comment which names the file.
/// Returns the number of files.
int write_files_of_page(const std::string& page, const std::string& folder) {
  std::ifstream input(std::string(PACELINE_SOURCE) + "/docs/" + page);
  std::ofstream file;
  int files = 0;
  bool in_block = false, at_start = false;
  for (std::string line; std::getline(input, line);) {
    if (line.starts_with("```")) {
      in_block = at_start = !in_block;
      file.close();
      continue;
    }
    if (at_start && in_block && !file_named_in(line).empty()) {
      file.open(folder + "/" + file_named_in(line));
      ++files;
    }
    at_start = false;
    if (in_block && file.is_open()) file << line << '\n';
  }
  return files;
}

double last_accuracy(const std::string& output) {
  const std::string label = ": accuracy ";
  const std::size_t at = output.rfind(label);
  return at == std::string::npos ? -1 : std::stod(output.substr(at + label.size()));
}

TEST(TrainYourOwn, ThePagesProgramIsBuiltAndLearns) {
  if (sanitized()) GTEST_SKIP() << "the installed library would need the sanitizer's flags";
  const TemporaryFolder folder;
  const std::string prefix = folder.path("prefix"), source = folder.path("source");
  std::filesystem::create_directory(source);
  ASSERT_EQ(write_files_of_page("train-your-own.md", source), 5);
  output_of({"cmake", "--install", PACELINE_BUILD, "--prefix", prefix}, kBuildTime);
  output_of({"cmake", "-G", "Ninja", "-S", source, "-B", source + "/build",
             "-DCMAKE_PREFIX_PATH=" + prefix, "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror"},
            kBuildTime);
  output_of({"cmake", "--build", source + "/build"}, kBuildTime);
  const auto circles = [&](const std::string& flags) {
    return output_of({"sh", "-c", "cd '" + source + "' && build/circles " + flags}, kRunTime);
  };
  output_of({"sh", "-c", "cd '" + source + "' && sh make_points.sh"}, kRunTime);
  EXPECT_GT(last_accuracy(circles("--steps 1500")), 0.85);
  EXPECT_GT(last_accuracy(circles("--steps 1500 --ps 1 --workers 2")), 0.85);
  EXPECT_THAT(circles("--epochs 10 --set hidden=32"), HasSubstr("epoch 10: accuracy"));
  std::ofstream(source + "/job.toml") << "batch = 25\n[set]\nhidden = 32\n";
  circles("--config job.toml --steps 20 --ps 1 --workers 1 --report run.json");
  std::ifstream report(source + "/run.json");
  const std::string text(std::istreambuf_iterator<char>(report), {});
  for (const char* there : {"\"--workers\": \"1\"", "\"batch\": \"25\"", "\"hidden\": \"32\"",
                            "\"learning_rate\": \"0.03\""}) {
    EXPECT_THAT(text, HasSubstr(there));
  }
  EXPECT_THAT(text, Not(HasSubstr("--cluster-id")));
}

TEST(OwnModel, WarnsAProgramThatHasNoBuildType) {
  if (sanitized()) GTEST_SKIP() << "the installed library would need the sanitizer's flags";
  const TemporaryFolder folder;
  const std::string prefix = folder.path("prefix"), source = folder.path("source");
  std::filesystem::create_directory(source);
  std::ofstream(source + "/CMakeLists.txt") << "cmake_minimum_required(VERSION 3.25)\n"
                                               "project(mine LANGUAGES CXX)\n"
                                               "find_package(paceline REQUIRED)\n";
  output_of({"cmake", "--install", PACELINE_BUILD, "--prefix", prefix}, kBuildTime);
  const std::vector<std::string> configure = {
      "cmake", "-S", source, "-B", source + "/build", "-DCMAKE_PREFIX_PATH=" + prefix};
  EXPECT_THAT(output_of(configure, kBuildTime), HasSubstr("mine has no build type"));
  std::vector<std::string> with_type = configure;
  with_type.push_back("-DCMAKE_BUILD_TYPE=Release");
  EXPECT_THAT(output_of(with_type, kBuildTime), Not(HasSubstr("no build type")));
}

TEST(OwnModel, IsBuiltAgainstAnInstalledPrefixAndTrains) {
  if (sanitized()) GTEST_SKIP() << "the installed library would need the sanitizer's flags";
  const TemporaryFolder folder;
  const std::string program = built_example("own_model", folder);
  EXPECT_THAT(output_of({program, "--steps", "50"}, kRunTime), HasSubstr("50 global steps"));
  const std::string cluster =
      output_of({program, "--ps", "1", "--workers", "2", "--steps", "50"}, kRunTime);
  EXPECT_THAT(cluster, HasSubstr("steps/s"));
  EXPECT_THAT(cluster, HasSubstr(" global steps ("));
  const std::string dry =
      output_of({program, "--ps", "1", "--workers", "2", "--dry-run"}, kRunTime);
  for (const char* there :
       {"nothing is started", "1 ps + 2 workers", "layer2/w", "A step of one worker"}) {
    EXPECT_THAT(dry, HasSubstr(there));
  }
  EXPECT_THAT(dry, Not(HasSubstr("global steps")));
  const std::string help = output_of({program, "--help"}, kRunTime);
  for (const char* there : {"Learns the absolute value", "--batch B", "hidden",
                            "Adam's learning rate (default 0.001; from 0 to 1)"}) {
    EXPECT_THAT(help, HasSubstr(there));
  }
  if (std::filesystem::exists(PACELINE_BUILD "/libpaceline_cuda.so")) {
    const Words on_gpu = {"env", "PACELINE_PLUGINS=" PACELINE_BUILD,
                          "LD_LIBRARY_PATH=" PACELINE_BUILD "/fakes", program};
    EXPECT_THAT(output_of(join({on_gpu, {"--steps", "3", "--device", "cuda"}}), kRunTime),
                HasSubstr("cuda:0 has no kernels of its own for swish: they run on the host"));
  }
  Process refused({program, "--ps", "1", "--workers", "1", "--set", "learning_rate=3"});
  EXPECT_EQ(refused.wait_exit(kRunTime), 2);
  EXPECT_THAT(refused.output(), HasSubstr("--set learning_rate=3: must be a number from 0 to 1"));
  const std::string offers =
      output_of({"bash", "--norc", "-c",
                 "source <('" + program +
                     "' --completion bash); COMP_WORDS=(own_model --set lea); "
                     "COMP_CWORD=2; _own_model; echo \"${COMPREPLY[@]}\""},
                kRunTime);
  EXPECT_THAT(offers, HasSubstr("learning_rate="));
}

// Writes `each` images of each class into FOLDER/CLASS; a class has one main colour.
void write_images(const std::string& folder, int each) {
  for (const auto& [name, colour] : {std::pair("blue", 2), std::pair("red", 0)}) {
    std::filesystem::create_directories(folder + "/" + name);
    for (int image = 0; image < each; ++image) {
      std::vector<std::uint8_t> pixels(24 * 30 * 3);
      for (std::size_t i = 0; i < pixels.size(); ++i) {
        pixels[i] = std::uint8_t((int(i % 3) == colour ? 160 : 60) + (int(i) * (image + 3)) % 50);
      }
      write_png(folder + "/" + name + "/" + std::to_string(image) + ".png", pixels, 24, 30);
    }
  }
}

TEST(ImagesExample, LearnsTheClassesOfAFolderAndTellsThemOfNewImages) {
  if (sanitized()) GTEST_SKIP() << "the installed library would need the sanitizer's flags";
  const TemporaryFolder folder;
  write_images(folder.path("photos/train"), 21);
  write_images(folder.path("photos/test"), 7);
  const std::string program = built_example("images", folder);
  const Words trains = {program, "--data", folder.path("photos"), "--batch", "8"};
  const std::string run = folder.path("run");
  EXPECT_THAT(output_of(join({trains, {"--out", run, "--keep-best", "loss/test"}}), kRunTime),
              AllOf(HasSubstr("42 images, 2 classes"), HasSubstr("step 100: test loss 0.0"),
                    HasSubstr("accuracy 1.0")));
  std::istringstream rows(output_of(
      {program, "infer", "--out", run + ":best", "--data", folder.path("photos/test")}, kRunTime));
  int found = 0;
  for (std::string row; std::getline(rows, row);) {
    for (const std::string name : {"blue", "red"}) {
      found += row.find(name + "/") != row.npos && row.find("," + name + ",") != row.npos ? 1 : 0;
    }
  }
  EXPECT_EQ(found, 14) << rows.str();
  EXPECT_THAT(output_of(join({trains, {"--ps", "1", "--workers", "2", "--epochs", "2"}}), kRunTime),
              HasSubstr("steps/s"));
}

TEST(EvaluationLoop, StopsWhenTheValidationLossFallsNoMore) {
  if (sanitized()) GTEST_SKIP() << "the installed library would need the sanitizer's flags";
  const TemporaryFolder folder;
  const std::string program = built_example("evaluation_loop", folder);
  const char* const stops = "stops: the validation loss fell in none of 5 evaluations";
  const std::string alone = output_of({program}, kRunTime);
  EXPECT_THAT(alone, HasSubstr(stops));
  EXPECT_THAT(alone, Not(HasSubstr("step 50000:")));
  EXPECT_THAT(output_of({program, "--ps", "1", "--workers", "2"}, kRunTime), HasSubstr(stops));
  EXPECT_THAT(output_of({program, "--steps", "200"}, kRunTime),
              AllOf(HasSubstr("step 200: validation loss"), Not(HasSubstr(stops))));
}

TEST(TrainedModel, IsUsedWithoutASession) {
  if (sanitized()) GTEST_SKIP() << "the installed library would need the sanitizer's flags";
  const TemporaryFolder folder, of_training;
  const std::string run = folder.path("run");
  output_of(
      {built_example("evaluation_loop", of_training), "--out", run, "--keep-best", "loss/valid"},
      kRunTime);
  const std::string program = built_example("trained_model", folder);
  std::istringstream lines(output_of({program, run + ":best", "0.5", "-0.5"}, kRunTime));
  std::string word;
  double step = 0, at = 0, up = 0, down = 0;
  lines >> word >> step >> at >> up >> at >> down;
  EXPECT_EQ(word, "step");
  EXPECT_GT(step, 0);
  EXPECT_NEAR(up, std::sin(1), 0.2);
  EXPECT_NEAR(down, std::sin(-1), 0.2);
  Process refused({program, folder.path("none"), "0.5"});
  EXPECT_EQ(refused.wait_exit(kRunTime), 1);
  EXPECT_THAT(refused.output(), HasSubstr("trained_model: "));
}

// The generator has its own rule, which a ps learns from the chief.
TEST(TwoPlayers, DrawTheRingAloneAndWithAPs) {
  if (sanitized()) GTEST_SKIP() << "the installed library would need the sanitizer's flags";
  const TemporaryFolder folder;
  const std::string program = built_example("two_players", folder);
  EXPECT_THAT(output_of({program, "--steps", "3000"}, kRunTime),
              AllOf(HasSubstr("step 3000: distance from the ring 0."),
                    Not(HasSubstr("step 3000: distance from the ring 0.9"))));
  EXPECT_THAT(output_of({program, "--ps", "1", "--workers", "2", "--steps", "2000"}, kRunTime),
              HasSubstr("distance from the ring 0."));
}

}  // namespace
}  // namespace paceline::testing
