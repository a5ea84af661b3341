#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/temporary_folder.h"
#include "base/testing/error_of.h"
#include "data/image_part.h"
#include "data/jpeg_encode.h"
#include "kernels/testing/each_instruction_set.h"
#include "paceline/data.h"

namespace paceline {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;
using Bytes = std::vector<std::uint8_t>;

/// A smooth image, in which red grows to the right and green downwards.
Bytes slope(std::int64_t height, std::int64_t width) {
  Bytes pixels;
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      pixels.push_back(std::uint8_t(255 * x / width));
      pixels.push_back(std::uint8_t(255 * y / height));
      pixels.push_back(90);
    }
  }
  return pixels;
}

Bytes png_file(const Bytes& pixels, std::int64_t height, std::int64_t width) {
  const TemporaryFolder folder;
  write_png(folder.path("a.png"), pixels, height, width);
  std::ifstream file(folder.path("a.png"), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Example decoded(const ImageDecoding& decoding, const Bytes& file, std::int64_t place = 0) {
  Example example;
  example.memory = file;
  example.bytes = example.memory;
  example.place = place;
  decode_image(decoding, example);
  return example;
}

Bytes pixels_of(const Example& example) { return {example.bytes.begin(), example.bytes.end()}; }

int greatest_distance(const Bytes& a, const Bytes& b) {
  if (a.size() != b.size()) return 256;
  int greatest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) greatest = std::max(greatest, std::abs(a[i] - b[i]));
  return greatest;
}

TEST(DecodeImage, GivesThePixelsOfAPngFile) {
  const Bytes pixels = slope(13, 7);
  const Example example = decoded({}, png_file(pixels, 13, 7));
  EXPECT_EQ(pixels_of(example), pixels);
  EXPECT_EQ(example.size, (ImageSize{13, 7, 3}));
  EXPECT_EQ(example.layout, PixelLayout::kInterleaved);
}

TEST(DecodeImage, GivesThePixelsOfAJpegFile) {
  const Bytes pixels = slope(61, 83);
  const Example example = decoded({}, encode_jpeg(pixels, 61, 83, 95));
  EXPECT_EQ(example.size, (ImageSize{61, 83, 3}));
  EXPECT_LT(greatest_distance(pixels_of(example), pixels), 10);
}

TEST(DecodeImage, GivesThreeChannelsOfGrey) {
  const Example example = decoded({}, encode_jpeg(Bytes(40 * 30, 77), 40, 30, 90, 1));
  EXPECT_EQ(example.size, (ImageSize{40, 30, 3}));
  EXPECT_THAT(example.bytes, Each(AllOf(Ge(76), Le(78))));
}

// A slope stays in its place at every scale and for every part.
TEST(DecodeImage, DecodesOnlyAPartOfAJpegFileWithoutMovingIt) {
  constexpr std::int64_t kHeight = 375, kWidth = 500;
  const Bytes file = encode_jpeg(slope(kHeight, kWidth), kHeight, kWidth, 95);
  const ImageDecoding decoding = {.height = 50, .width = 50, .random = true};
  for (std::int64_t place = 0; place < 60; ++place) {
    const ImagePart part = part_to_decode(decoding, {kHeight, kWidth, 3}, 0, place);
    const Example example = decoded(decoding, file, place);
    for (const std::int64_t at : {0, 17, 49}) {
      const std::uint8_t* pixel = example.bytes.data() + (at * 50 + at) * 3;
      const double x = part.left + (double(at) + 0.5) * part.width / 50;
      const double y = part.top + (double(at) + 0.5) * part.height / 50;
      EXPECT_NEAR(pixel[0], 255 * x / kWidth, 3.5) << place;
      EXPECT_NEAR(pixel[1], 255 * y / kHeight, 3.5) << place;
      EXPECT_NEAR(pixel[2], 90, 3);
    }
  }
}

TEST(DecodeImage, TakesTheCentreForEvaluation) {
  const Bytes file = png_file(slope(40, 100), 40, 100);
  const Example example = decoded({.height = 20, .width = 20}, file);
  EXPECT_EQ(example.size, (ImageSize{20, 20, 3}));
  // The left edge of the middle 40 columns.
  EXPECT_NEAR(example.bytes[0], 255 * 0.305, 2);
  EXPECT_NEAR(example.bytes[19 * 3], 255 * 0.69, 2);
}

TEST(DecodeImage, DrawsPartsOfTheAreasAndRatiosThatWereAskedFor) {
  const ImageDecoding decoding = {.height = 224, .width = 224, .random = true};
  double least = 1, most = 0, mean = 0, narrowest = 9, widest = 0;
  constexpr int kDraws = 5000;
  for (std::int64_t place = 0; place < kDraws; ++place) {
    const ImagePart part = part_to_decode(decoding, {2000, 2000, 3}, 3, place);
    const double area = part.width * part.height / 4e6, ratio = part.width / part.height;
    ASSERT_GE(part.left, 0);
    ASSERT_GE(part.top, 0);
    ASSERT_LE(part.left + part.width, 2000);
    ASSERT_LE(part.top + part.height, 2000);
    least = std::min(least, area);
    most = std::max(most, area);
    mean += area / kDraws;
    narrowest = std::min(narrowest, ratio);
    widest = std::max(widest, ratio);
  }
  EXPECT_NEAR(least, 0.08, 0.005);
  EXPECT_GT(most, 0.95);
  // Areas are drawn evenly from 0.08 to 1, but those above 3/4 do not fit at every aspect ratio. So
  // the mean is ∫ a p(a) da ÷ ∫ p(a) da with p(a) = min(1, −ln a ÷ ln 4/3).
  EXPECT_NEAR(mean, 0.478, 0.02);
  EXPECT_NEAR(narrowest, 0.75, 0.01);
  EXPECT_NEAR(widest, 4.0 / 3, 0.01);
}

TEST(DecodeImage, NamesWhatIsWrongWithAFile) {
  const auto fault = [](Bytes file) {
    return error_of(ErrorCode::kDataLoss, [&] { decoded({.height = 8, .width = 8}, file); });
  };
  Bytes jpeg = encode_jpeg(slope(64, 64), 64, 64, 90), png = png_file(slope(64, 64), 64, 64);
  EXPECT_THAT(fault({}), HasSubstr("it is empty"));
  EXPECT_THAT(fault({1, 2, 3, 4}), HasSubstr("no JPEG, PNG or WebP"));
  jpeg.resize(jpeg.size() / 2);
  png.resize(png.size() / 2);
  EXPECT_NE(fault(jpeg), "");
  EXPECT_NE(fault(png), "");
  EXPECT_NE(fault({0xFF, 0xD8, 0xFF, 0xE0}), "");
}

TEST(ResizePart, IsBilinearOnEveryInstructionSet) {
  with_each_instruction_set([] {
    Bytes to(5 * 7 * 3);
    const Bytes from = slope(11, 19);
    const DecodedPart part = {11, 19, {1.5, 2.25, 15, 8}};
    resize_part(from, part, 5, 7, to.data());
    for (std::int64_t y = 0; y < 5; ++y) {
      for (std::int64_t x = 0; x < 7; ++x) {
        const double right = 1.5 + (double(x) + 0.5) * 15 / 7 - 0.5;
        const double down = 2.25 + (double(y) + 0.5) * 8 / 5 - 0.5;
        const auto at = [&](std::int64_t row, std::int64_t column, std::int64_t c) {
          return double(from[std::size_t((row * 19 + column) * 3 + c)]);
        };
        for (std::int64_t c = 0; c < 3; ++c) {
          const auto x0 = std::int64_t(right), y0 = std::int64_t(down);
          const double u = right - double(x0), v = down - double(y0);
          const double wanted = (1 - v) * ((1 - u) * at(y0, x0, c) + u * at(y0, x0 + 1, c)) +
                                v * ((1 - u) * at(y0 + 1, x0, c) + u * at(y0 + 1, x0 + 1, c));
          EXPECT_NEAR(to[std::size_t((y * 7 + x) * 3 + c)], wanted, 0.501);
        }
      }
    }
  });
}

TEST(WritePng, RefusesPixelsOfAnotherSize) {
  error_of(ErrorCode::kInvalidArgument, [] { write_png("x.png", Bytes(5), 1, 2); });
  EXPECT_NE(error_of([] { write_png("x.png", Bytes(5), 1, 2); }), "");
}

class ImageFolderTest : public ::testing::Test {
 protected:
  void write(const std::string& name, const Bytes& bytes) {
    const std::filesystem::path path = folder_.path(name);
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), std::streamsize(bytes.size()));
  }
  void write_two_classes() {
    write("b/2.JPG", encode_jpeg(slope(20, 20), 20, 20, 90));
    write("b/1.jpeg", encode_jpeg(slope(30, 20), 30, 20, 90));
    write("a/x.png", png_file(slope(20, 20), 20, 20));
    write("a/notes.txt", {1});
    write(".hidden/1.jpg", {1});
  }
  std::string folder() const { return folder_.path(); }
  const TemporaryFolder folder_;
};

TEST_F(ImageFolderTest, LabelsImagesByTheNameOfTheirFolder) {
  write_two_classes();
  const auto source = image_folder(folder());
  EXPECT_THAT(source->classes(), testing::ElementsAre("a", "b"));
  EXPECT_THAT(source->files(), testing::ElementsAre(3));
  EXPECT_EQ(source->name(1), folder() + "/b/1.jpeg");
  Example example;
  source->read(2, example);
  EXPECT_EQ(example.label, 1);
  decode_image({}, example);
  EXPECT_EQ(example.size, (ImageSize{20, 20, 3}));
}

TEST_F(ImageFolderTest, TakesLabelsOfTheTrainingData) {
  write_two_classes();
  const auto source = image_folder(folder(), {"0", "a", "b", "c"});
  Example example;
  source->read(0, example);
  EXPECT_EQ(example.label, 1);
  EXPECT_THAT(error_of(ErrorCode::kInvalidArgument,
                       [&] {
                         image_folder(folder(), {"a", "c"});
                       }),
              HasSubstr("holds the class 'b', which the training data does not have"));
}

TEST_F(ImageFolderTest, NamesAFolderWithoutTwoClasses) {
  error_of(ErrorCode::kNotFound, [&] { image_folder(folder_.path("nowhere")); });
  EXPECT_THAT(error_of(ErrorCode::kInvalidArgument, [&] { image_folder(folder()); }),
              HasSubstr("holds no folder: images are in one folder for each class"));
  write("cat/1.jpg", {1});
  EXPECT_THAT(error_of(ErrorCode::kInvalidArgument, [&] { image_folder(folder()); }),
              HasSubstr("holds only the class 'cat'"));
  std::filesystem::create_directory(folder_.path("dog"));
  EXPECT_THAT(error_of(ErrorCode::kInvalidArgument, [&] { image_folder(folder()); }),
              HasSubstr("the class 'dog' of "));
}

TEST_F(ImageFolderTest, TakesEveryEndingOfItsFormatsAndCountsTheRest) {
  write_two_classes();
  for (const char* name : {"a/1.jpe", "a/2.JFIF", "b/3.webp"}) write(name, {1});
  EXPECT_THAT(image_folder(folder())->files(), testing::ElementsAre(6));
  for (const char* name : {"readme", "b/4.gif", "b/5.gif", "a/in/1.jpg", "b/in/1.jpg"}) {
    write(name, {1});
  }
  EXPECT_EQ(image_folder(folder())->left_out(), "2 .gif, 1 .txt, 1 without an ending, 2 folders");
}

TEST_F(ImageFolderTest, TellsWhatAClassWithoutImagesHolds) {
  write_two_classes();
  write("dog/1.gif", {1});
  write("dog/more/1.jpg", {1});
  EXPECT_THAT(error_of(ErrorCode::kInvalidArgument, [&] { image_folder(folder()); }),
              AllOf(HasSubstr("the class 'dog' of "), HasSubstr("it holds 1 .gif, 1 folder")));
}

// A listing of the folder shows links, pipes and empty files beside the others, so the user expects
// them to be used.
TEST_F(ImageFolderTest, NamesLinksToNowherePipesAndEmptyFiles) {
  write_two_classes();
  write("b/9-empty.png", {});
  std::filesystem::create_symlink("/nowhere.jpg", folder_.path("b/8-link.jpg"));
  ASSERT_EQ(mkfifo(folder_.path("b/7-pipe.jpg").c_str(), 0600), 0);
  std::vector<std::string> said;
  PipelineReader reader(Pipeline(image_folder(folder()))
                            .decode({.height = 16, .width = 16})
                            .distort({.height = 16, .width = 16})
                            .batch(6)
                            .threads(1)
                            .max_bad(3)
                            .on_bad([&](const std::string& bad) { said.push_back(bad); }));
  ASSERT_NE(reader.next(), nullptr);
  EXPECT_THAT(said,
              testing::ElementsAre(HasSubstr("b/7-pipe.jpg: it is no file"),
                                   HasSubstr("b/8-link.jpg: No such file"),
                                   HasSubstr("b/9-empty.png cannot be decoded: it is empty")));
  std::filesystem::create_symlink("/nowhere", folder_.path("c"));
  EXPECT_THAT(error_of(ErrorCode::kNotFound, [&] { image_folder(folder()); }),
              HasSubstr("/c is a link to what is not there"));
}

Pipeline pipeline_of(const std::string& folder) {
  return Pipeline(image_folder(folder))
      .decode({.height = 16, .width = 16})
      .distort({.height = 16, .width = 16})
      .batch(3)
      .threads(2);
}

TEST_F(ImageFolderTest, WithoutClassesHasTheFilesOfAllFoldersInIt) {
  write("new/b.png", png_file(slope(20, 20), 20, 20));
  write("new/a.PNG", png_file(slope(20, 20), 20, 20));
  write("new/deep/er/c.png", png_file(slope(30, 20), 30, 20));
  write("new/notes.txt", {1});
  std::filesystem::create_directory_symlink("..", folder_.path("new/deep/back"));
  const auto images = image_files(folder_.path("new"));
  EXPECT_THAT(images->files(), testing::ElementsAre(3));
  EXPECT_EQ(images->name(0), folder_.path("new/a.PNG"));
  EXPECT_EQ(images->name(2), folder_.path("new/deep/er/c.png"));
  EXPECT_EQ(images->left_out(), "1 .txt");
  EXPECT_THAT(images->classes(), testing::ElementsAre());
  EXPECT_THAT(image_files(folder_.path("new/b.png"))->files(), testing::ElementsAre(1));
  Example example;
  images->read(2, example);
  decode_image({}, example);
  EXPECT_EQ(example.size, (ImageSize{30, 20, 3}));
}

TEST_F(ImageFolderTest, WithoutClassesNamesWhatHoldsNoImage) {
  write("new/notes.txt", {1});
  EXPECT_THAT(error_of(ErrorCode::kInvalidArgument, [&] { image_files(folder_.path("new")); }),
              HasSubstr("new holds no image (.jpg"));
  EXPECT_THAT(error_of(ErrorCode::kNotFound, [&] { image_files(folder_.path("old")); }),
              HasSubstr("there is no file or folder " + folder_.path("old")));
}

TEST_F(ImageFolderTest, MakesBatchesOfImagesOfAnySize) {
  write_two_classes();
  PipelineReader reader(pipeline_of(folder()));
  const InputBatch* const batch = reader.next();
  ASSERT_NE(batch, nullptr);
  EXPECT_EQ(batch->values.shape(), (Shape{3, 3, 16, 16}));
  EXPECT_THAT(batch->labels.data<std::int32_t>(), testing::ElementsAre(0, 1, 1));
}

TEST_F(ImageFolderTest, NamesACorruptImageAndOneThatVanished) {
  write_two_classes();
  write("b/0.jpg", {0xFF, 0xD8, 0xFF, 0xE0, 0, 16});
  const Pipeline pipeline = pipeline_of(folder());
  EXPECT_THAT(error_of(ErrorCode::kDataLoss, [&] { PipelineReader(pipeline).next(); }),
              HasSubstr(folder() + "/b/0.jpg cannot be decoded: "));
  std::filesystem::remove(folder_.path("b/1.jpeg"));
  std::vector<std::string> said;
  Pipeline patient = Pipeline(pipeline).max_bad(2).threads(1).on_bad(
      [&](const std::string& bad) { said.push_back(bad); });
  PipelineReader reader(patient);
  const InputBatch* const batch = reader.next();
  ASSERT_NE(batch, nullptr);
  EXPECT_THAT(batch->weights.data<float>(), testing::ElementsAre(1, 0, 0));
  EXPECT_THAT(said,
              testing::ElementsAre(HasSubstr("b/0.jpg"), HasSubstr("b/1.jpeg: No such file")));
  EXPECT_EQ(reader.report().bad, 2);
}

}  // namespace
}  // namespace paceline
