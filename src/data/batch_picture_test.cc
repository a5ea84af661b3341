#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <limits>

#include "base/temporary_folder.h"
#include "base/testing/error_of.h"
#include "data/picture.h"
#include "paceline/data.h"

namespace paceline {
namespace {

using ::testing::HasSubstr;

Example picture(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Example example;
  example.memory = {std::istreambuf_iterator<char>(file), {}};
  example.bytes = example.memory;
  decode_image({}, example);
  return example;
}

TEST(WriteBatchPng, ShowsImagesSideBySideStretched) {
  const TemporaryFolder folder;
  // Three images of 1×2. In the first, red grows to the right; the other two have one colour each.
  InputBatch batch;
  batch.values =
      Tensor::of<float>({3, 3, 1, 2}, {-1, 3, -1, -1, -1, -1, 5, 5, 5, 5, 5, 5, 7, 7, 7, 7, 7, 7});
  write_batch_png(folder.path("batch.png"), batch);
  const Example seen = picture(folder.path("batch.png"));
  EXPECT_EQ(seen.size, (ImageSize{4, 6, 3}));  // two rows of two, and gaps
  const auto pixel = [&](std::size_t row, std::size_t column) {
    return std::vector<int>{seen.bytes[(row * 6 + column) * 3],
                            seen.bytes[(row * 6 + column) * 3 + 1]};
  };
  EXPECT_EQ(pixel(0, 0), (std::vector<int>{0, 0}));
  EXPECT_EQ(pixel(0, 1), (std::vector<int>{255, 0}));
}

TEST(WriteBatchPng, TakesBothLayoutsAndNamesOthers) {
  const TemporaryFolder folder;
  InputBatch batch;
  batch.values = Tensor::of<float>({1, 1, 2, 3}, {0, 1, 2, 3, 4, 5});
  write_batch_png(folder.path("batch.png"), batch, PixelLayout::kInterleaved);
  EXPECT_EQ(picture(folder.path("batch.png")).bytes[4], 204);  // green of the second pixel
  EXPECT_THAT(
      error_of(ErrorCode::kInvalidArgument, [&] { write_batch_png(folder.path("x.png"), batch); }),
      HasSubstr("is no images of three channels"));
}

TEST(DrawImage, ShowsGreyAndWhatIsNotFiniteIsBlack) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> values = {nan, 2, 4, std::numeric_limits<float>::infinity()};
  std::vector<std::uint8_t> pixels(12);
  draw_image(values, {2, 2, 1}, PixelLayout::kPlanar, pixels.data(), 2);
  EXPECT_THAT(pixels, ::testing::ElementsAre(0, 0, 0, 0, 0, 0, 255, 255, 255, 0, 0, 0));
  draw_image(std::vector<float>(4, nan), {2, 2, 1}, PixelLayout::kPlanar, pixels.data(), 2);
  EXPECT_THAT(pixels, ::testing::Each(0));
}

TEST(ImageForm, IsThatOfBatchesOfOneChannelOrThree) {
  const auto form = [](const Shape& shape, DType dtype = DType::kFloat32) {
    return image_form(dtype, shape);
  };
  EXPECT_EQ(form({2, 3, 8, 9})->size, (ImageSize{8, 9, 3}));
  EXPECT_EQ(form({2, 1, 8, 9})->layout, PixelLayout::kPlanar);
  EXPECT_EQ(form({2, 8, 9, 1})->size, (ImageSize{8, 9, 1}));
  EXPECT_EQ(form({2, 8, 9, 3})->layout, PixelLayout::kInterleaved);
  EXPECT_FALSE(form({2, 8, 9, 4}));
  EXPECT_FALSE(form({2, 8, 3}));
  EXPECT_FALSE(form({0, 3, 8, 9}));
  EXPECT_FALSE(form({2, 3, 8, 9}, DType::kInt32));
}

}  // namespace
}  // namespace paceline
