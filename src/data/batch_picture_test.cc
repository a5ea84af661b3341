#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "base/temporary_folder.h"
#include "base/testing/error_of.h"
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
  // Three images of 1×2; red of the first grows to the right, and the others are of one colour.
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

}  // namespace
}  // namespace paceline
