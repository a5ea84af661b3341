#include "models/image_data.h"
#include "paceline/zoo_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "base/temporary_folder.h"
#include "base/testing/error_of.h"
#include "paceline/error.h"
#include "tests/process.h"

namespace paceline::models {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::ResultOf;
using ::testing::StartsWith;

class ImageDataTest : public ::testing::Test {
 protected:
  ImageData open(const std::map<std::string, std::string>& set, std::int64_t batch = 8,
                 const Cluster& cluster = {}) {
    Settings settings(ImageSettings("40% of the data").all());
    for (const auto& [name, value] : set) settings.set(name, value);
    return image_data(settings, ImageUse::cifar10(batch, 10, 1), cluster);
  }
  void write_folder_of_images(const std::string& name) {
    const std::vector<std::uint8_t> grey(40 * 50 * 3, 128);
    for (const char* file : {"cat/1.png", "cat/2.png", "dog/1.png"}) {
      const std::filesystem::path path = std::filesystem::path(folder_.path(name)) / file;
      std::filesystem::create_directories(path.parent_path());
      write_png(path.string(), grey, 40, 50);
    }
  }
  const TemporaryFolder folder_;
};

TEST_F(ImageDataTest, ReadsAFolderOfBinaryFiles) {
  generate_images(folder_.path(), 100, 1);
  const ImageData data = open({{"data", folder_.path()}});
  EXPECT_EQ(data.training.examples(), 100);
  ASSERT_TRUE(data.evaluation);
  EXPECT_EQ(data.evaluation->examples(), 20);
  EXPECT_EQ(data.evaluation->batches(), 2);
  EXPECT_EQ(data.classes, 10);
  PipelineReader reader(data.training);
  for (int i = 0; i < 30; ++i) ASSERT_NE(reader.next(), nullptr);  // the pipeline repeats
  EXPECT_EQ(reader.next()->values.shape(), (Shape{8, 3, 24, 24}));
}

TEST_F(ImageDataTest, ReadsAFileAndAPatternWithDataToEvaluateWithBesideIt) {
  generate_images(folder_.path(), 100, 1);
  EXPECT_EQ(open({{"data", folder_.path("data_batch_2.bin")}}).training.examples(), 20);
  const ImageData data = open({{"data", folder_.path("data_batch_[1-3].bin")},
                               {"eval_data", folder_.path("data_batch_4.bin")}});
  EXPECT_EQ(data.training.examples(), 60);
  EXPECT_EQ(data.evaluation->examples(), 20);
  EXPECT_FALSE(open({{"data", folder_.path("data_batch_2.bin")}}).evaluation);
}

TEST_F(ImageDataTest, ReadsFoldersOfImagesOfAnySize) {
  write_folder_of_images("train");
  write_folder_of_images("test");
  const ImageData data = open({{"data", folder_.path()}}, 3);
  EXPECT_EQ(data.classes, 2);
  EXPECT_THAT(data.class_names, ElementsAre("cat", "dog"));
  EXPECT_EQ(data.training.examples(), 3);
  ASSERT_TRUE(data.evaluation);
  PipelineReader reader(*data.evaluation);
  const InputBatch* const batch = reader.next();
  EXPECT_EQ(batch->values.shape(), (Shape{10, 3, 24, 24}));
  EXPECT_EQ(batch->records, 3);
  EXPECT_FALSE(open({{"data", folder_.path("train")}}, 3).evaluation);
}

TEST_F(ImageDataTest, SaysWhichClassesAnEvaluationLacks) {
  write_folder_of_images("train");
  write_folder_of_images("fewer");
  std::filesystem::remove_all(folder_.path("fewer/dog"));
  const auto notes = [&](const std::string& evaluated) {
    return open({{"data", folder_.path("train")}, {"eval_data", folder_.path(evaluated)}}, 3).notes;
  };
  EXPECT_THAT(notes("fewer"), ::testing::Contains(EndsWith("fewer lacks a class: dog")));
  EXPECT_THAT(notes("train"), ::testing::Not(::testing::Contains(HasSubstr("lacks"))));
}

// The folder holds the images of one class after those of another.
TEST_F(ImageDataTest, TheFirstImagesOfAFolderAreOfAllClasses) {
  const std::vector<std::uint8_t> grey(4 * 4 * 3, 128);
  for (const std::string name : {"cat", "dog"}) {
    std::filesystem::create_directories(folder_.path(name));
    for (int i = 0; i < 40; ++i)
      write_png(folder_.path(name) + "/" + std::to_string(i) + ".png", grey, 4, 4);
  }
  Settings settings(ImageSettings("16 batches").all());
  settings.set("data", folder_.path());
  const ImageData data = image_data(settings, ImageUse::resnet(1, 1, 1), {});
  PipelineReader reader(data.training);
  std::set<std::int32_t> classes;
  for (int i = 0; i < 20; ++i) classes.insert(reader.next()->labels.data<std::int32_t>()[0]);
  EXPECT_THAT(classes, ElementsAre(0, 1));
}

TEST_F(ImageDataTest, NamesABadImageOnceForAllPipelinesThatReadIt) {
  write_folder_of_images("");
  std::ofstream(folder_.path("dog/2.png")) << "no picture";
  const ImageData data = open({{"data", folder_.path()}, {"max_bad", "1"}}, 3);
  Pipeline undistorted = data.undistorted;
  ::testing::internal::CaptureStderr();
  for (const Pipeline& pipeline : {data.training, undistorted.batch(4)}) {
    PipelineReader reader(pipeline);
    for (int i = 0; i < 3; ++i) reader.next();
  }
  EXPECT_THAT(
      ::testing::internal::GetCapturedStderr(),
      AllOf(StartsWith("paceline: left out: "), HasSubstr("dog/2.png"), EndsWith("\n"),
            ResultOf([](const std::string& said) { return std::ranges::count(said, '\n'); }, 1)));
}

TEST_F(ImageDataTest, GivesEachWorkerItsShard) {
  generate_images(folder_.path(), 101, 1);
  std::int64_t all = 0;
  for (int worker = 0; worker < 2; ++worker) {
    Cluster cluster;
    cluster.spec.workers = {"a:1", "b:1"};
    cluster.task.index = worker;
    all += open({{"data", folder_.path()}}, 8, cluster).training.examples();
  }
  EXPECT_EQ(all, 101);
}

TEST_F(ImageDataTest, IsGeneratedWhereNoneIsNamed) {
  const ImageData data = open({});
  EXPECT_EQ(data.training.examples(), 5000);
  ASSERT_TRUE(data.evaluation);
  EXPECT_EQ(data.evaluation->examples(), 1000);
  EXPECT_EQ(data.classes, 10);
}

TEST_F(ImageDataTest, NamesTheFlagAndTheRemedyWhenThereIsNothingAtThePath) {
  EXPECT_THAT(error_of(ErrorCode::kUsage,
                       [&] {
                         open({{"data", folder_.path("nowhere")}});
                       }),
              AllOf(HasSubstr("nowhere: there is no file or folder"),
                    HasSubstr("paceline data images --out DIR")));
  EXPECT_THAT(error_of(ErrorCode::kUsage,
                       [&] {
                         open({{"eval_data", folder_.path()}});
                       }),
              HasSubstr("--eval-data " + folder_.path() + " needs --data"));
  std::filesystem::create_directory(folder_.path("one"));
  EXPECT_THAT(error_of(ErrorCode::kUsage,
                       [&] {
                         open({{"data", folder_.path()}});
                       }),
              HasSubstr("holds only the class 'one'"));
  std::ofstream(folder_.path("torn.bin")) << "abc";
  EXPECT_THAT(error_of(ErrorCode::kDataLoss,
                       [&] {
                         open({{"data", folder_.path("torn.bin")}});
                       }),
              HasSubstr("no whole number of records of 3073 bytes"));
}

TEST_F(ImageDataTest, SaysHowManyImagesWereFoundAndWhatIsLeftOut) {
  write_folder_of_images("train");
  write_folder_of_images("test");
  std::ofstream(folder_.path("train/dog/1.gif")) << "GIF89a";
  std::ofstream(folder_.path("read.me")) << "images";
  EXPECT_THAT(open({{"data", folder_.path()}}, 3).notes,
              ElementsAre("3 images, 2 classes, from " + folder_.path("train"),
                          "left out of " + folder_.path("train") + ": 1 .gif",
                          "left out of " + folder_.path() + ": read.me",
                          "3 images, 2 classes, from " + folder_.path("test")));
  generate_images(folder_.path("binary"), 2000, 1);
  EXPECT_THAT(open({{"data", folder_.path("binary")}}).notes,
              ElementsAre("2,000 images, 10 classes, from " + folder_.path("binary"),
                          "400 images, 10 classes, from " + folder_.path("binary/test_batch.bin")));
}

TEST_F(ImageDataTest, RefusesPartsOfOtherNames) {
  const auto refused = [&](const std::map<std::string, std::string>& set) {
    return error_of(ErrorCode::kUsage, [&] { open(set, 3); });
  };
  for (const char* name : {"Train", "training"}) {
    write_folder_of_images(std::string("a/") + name);
    EXPECT_THAT(refused({{"data", folder_.path("a")}}),
                AllOf(HasSubstr("--data " + folder_.path("a") + ": "),
                      HasSubstr(std::string("'") + name + "' in it holds folders, and no images"),
                      HasSubstr("in 'train'")));
    std::filesystem::remove_all(folder_.path("a"));
  }
  write_folder_of_images("b/train");
  write_folder_of_images("b/eval");
  EXPECT_THAT(refused({{"data", folder_.path("b")}}),
              HasSubstr("'eval' lies beside 'train', and is not known: images to evaluate with are "
                        "in 'test', 'val'"));
  EXPECT_TRUE(
      open({{"data", folder_.path("b")}, {"eval_data", folder_.path("b/eval")}}, 3).evaluation);
  write_folder_of_images("b/val");
  EXPECT_THAT(open({{"data", folder_.path("b")}}, 3).notes,
              ::testing::Contains("left out of " + folder_.path("b") + ": eval"));
}

TEST_F(ImageDataTest, KnowsCifarsFilesForPython) {
  for (const char* name : {"data_batch_1", "batches.meta"}) std::ofstream(folder_.path(name)) << 1;
  EXPECT_THAT(error_of(ErrorCode::kUsage,
                       [&] {
                         open({{"data", folder_.path()}});
                       }),
              AllOf(HasSubstr("holds CIFAR's files for Python ('batches.meta')"),
                    HasSubstr("data_batch_1.bin")));
}

TEST_F(ImageDataTest, NamesTheFlagThatWasGiven) {
  write_folder_of_images("train");
  const std::string nowhere = folder_.path("nowhere");
  for (const std::string& data : {folder_.path("train"), nowhere}) {
    EXPECT_THAT(error_of(ErrorCode::kUsage,
                         [&] {
                           open({{"data", data}, {"eval_data", nowhere}}, 3);
                         }),
                StartsWith("--eval-data " + nowhere + ": "));
  }
}

TEST_F(ImageDataTest, SavesAPictureOfABatch) {
  generate_images(folder_.path(), 50, 1);
  Settings settings(ImageSettings("all").all());
  settings.set("data", folder_.path());
  settings.set("save_images", folder_.path("seen.png"));
  const ImageData data = image_data(settings, ImageUse::resnet(16, 10, 1), {});
  save_images(settings, data, {});
  std::ifstream file(folder_.path("seen.png"), std::ios::binary);
  Example example;
  example.memory = {std::istreambuf_iterator<char>(file), {}};
  example.bytes = example.memory;
  decode_image({}, example);
  EXPECT_EQ(example.size, (ImageSize{4 * 34 - 2, 4 * 34 - 2, 3}));
}

TEST_F(ImageDataTest, ReadsWhatTheCommandGenerates) {
  using ::paceline::testing::run_paceline;
  const auto made = run_paceline({"data", "images", "--out", folder_.path("new"), "--count", "40"});
  EXPECT_EQ(made.status, 0) << made.output;
  EXPECT_THAT(made.output, HasSubstr("40 images in "));
  EXPECT_EQ(open({{"data", folder_.path("new")}}).training.examples(), 40);
  const auto again = run_paceline({"data", "images", "--out", folder_.path("new")});
  EXPECT_EQ(again.status, 2);
  EXPECT_THAT(again.output, HasSubstr("data_batch_1.bin is there already"));
  const auto few = run_paceline({"data", "images", "--out", folder_.path("few"), "--count", "5"});
  EXPECT_EQ(few.status, 2);
  EXPECT_THAT(few.output, AllOf(HasSubstr("--count 5"), HasSubstr("the least is 10")));
  EXPECT_THAT(run_paceline({"data", "image"}).output, HasSubstr("did you mean 'images'?"));
}

TEST_F(ImageDataTest, ReadsTheRealImages) {
  const char* const real = std::getenv("PACELINE_DATA");
  if (real == nullptr) GTEST_SKIP() << "PACELINE_DATA is not set";
  const ImageData data = open({{"data", std::string(real) + "/cifar10_subset"}}, 128);
  EXPECT_EQ(data.training.examples(), 5085);
  EXPECT_EQ(data.evaluation->examples(), 1017);
  PipelineReader reader(*data.evaluation);
  std::int64_t records = 0;
  while (const InputBatch* const batch = reader.next()) records += batch->records;
  EXPECT_EQ(records, 1017);
}

}  // namespace
}  // namespace paceline::models
