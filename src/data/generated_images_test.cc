#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "base/temporary_folder.h"
#include "base/testing/error_of.h"
#include "paceline/data.h"
#include "paceline/zoo_data.h"

namespace paceline {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(GeneratedImages, AreInTheFormatOfCifar10WithEachClassEquallyOften) {
  const TemporaryFolder folder;
  generate_images(folder.path(), 200, 1);
  const auto train = record_files(files_of(folder.path("data_batch_*"), ".bin"));
  const auto test = record_files(files_of(folder.path("test_batch.bin"), ".bin"));
  EXPECT_THAT(train->files(), ElementsAre(40, 40, 40, 40, 40));
  EXPECT_THAT(test->files(), ElementsAre(40));
  std::array<int, 10> counts{};
  Example example;
  for (std::int64_t i = 0; i < 200; ++i) {
    train->read(i, example);
    ++counts[std::size_t(example.label)];
  }
  for (const int count : counts) EXPECT_EQ(count, 20);
}

TEST(GeneratedImages, AreTheSameForASeedAndOthersForAnother) {
  const TemporaryFolder folder;
  const auto first_image = [&](const std::string& name, std::uint64_t seed) {
    generate_images(folder.path(name), 10, seed);
    Example example;
    record_files(files_of(folder.path(name), ".bin"))->read(0, example);
    return example.memory;
  };
  const auto image = first_image("a", 1);
  EXPECT_EQ(first_image("b", 1), image);
  EXPECT_NE(first_image("c", 2), image);
}

TEST(GeneratedImages, AreTheSameInMemory) {
  const TemporaryFolder folder;
  generate_images(folder.path(), 20, 3);
  const auto file = record_files({folder.path("test_batch.bin")});
  const auto memory = generated_images(5, 3, 20);  // those that follow the training images
  Example written, made;
  for (std::int64_t i = 0; i < 5; ++i) {
    file->read(i, written);
    memory->read(i, made);
    EXPECT_EQ(made.label, written.label);
    EXPECT_THAT(made.bytes, ElementsAreArray(written.bytes));
  }
}

TEST(GeneratedImages, ReplaceNoFile) {
  const TemporaryFolder folder;
  generate_images(folder.path(), 10, 1);
  EXPECT_THAT(
      error_of(ErrorCode::kFailedPrecondition, [&] { generate_images(folder.path(), 10, 1); }),
      HasSubstr("data_batch_1.bin is there already"));
  EXPECT_THAT(error_of(ErrorCode::kInvalidArgument, [&] { generate_images(folder.path(), 9, 1); }),
              HasSubstr("the least is 10"));
}

TEST(GeneratedImages, AreRefusedWhereTheDiskHasNoRoomForThem) {
  const TemporaryFolder folder;
  EXPECT_THAT(error_of(ErrorCode::kInvalidArgument,
                       [&] { generate_images(folder.path(), 1'000'000'000'000'000, 1); }),
              StartsWith("takes 3,686,000,000,000 MB, and " + folder.path() + " has room for "));
}

// The mean colour of an image tells nothing of its class.
TEST(GeneratedImages, DifferNotInColour) {
  const TemporaryFolder folder;
  generate_images(folder.path(), 2000, 1);
  const auto train = record_files(files_of(folder.path("data_batch_*"), ".bin"));
  std::array<double, 10> means{};
  Example example;
  for (std::int64_t i = 0; i < 2000; ++i) {
    train->read(i, example);
    for (const std::uint8_t pixel : example.bytes) {
      means[std::size_t(example.label)] += pixel / 3072.0 / 200;
    }
  }
  for (const double mean : means) EXPECT_NEAR(mean, 127, 10);
}

}  // namespace
}  // namespace paceline
