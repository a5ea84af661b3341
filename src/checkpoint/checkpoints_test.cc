#include "checkpoint/checkpoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>

#include "base/testing/error_of.h"
#include "checkpoint/testing/folder.h"
#include "checkpoint/testing/sample_checkpoint.h"

namespace paceline::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::int64_t> steps_of(const std::vector<FoundCheckpoint>& found) {
  std::vector<std::int64_t> steps(found.size());
  std::ranges::transform(found, steps.begin(), &FoundCheckpoint::step);
  return steps;
}

class CheckpointsTest : public ::testing::Test {
 protected:
  void save(std::int64_t step) { save_sample(folder_.path(), step, 2); }
  /// Cuts a byte off a shard.
  void tear(std::int64_t step) {
    const std::string shard = checkpoints_.path_of(step) + "/shard-1-of-2.safetensors";
    std::filesystem::resize_file(shard, std::filesystem::file_size(shard) - 1);
  }
  std::vector<std::int64_t> steps() const {
    return steps_of(checkpoints_.list(WholeCheck::kSizes));
  }
  const Folder folder_{};
  const Checkpoints checkpoints_{folder_.path()};
};

TEST_F(CheckpointsTest, AreListedByStepTheNewestFirst) {
  for (const int step : {9, 100, 20}) save(step);
  folder_.write("step-7x", "");
  folder_.write("other", "");
  std::filesystem::create_directory(folder_.path("step-5.part"));
  std::filesystem::create_directory(folder_.path("step-005"));
  EXPECT_THAT(steps(), ElementsAre(100, 20, 9));
}

TEST_F(CheckpointsTest, AFolderThatIsNotThereHasNone) {
  EXPECT_THAT(Checkpoints(folder_.path("none")).list(WholeCheck::kSizes), IsEmpty());
  EXPECT_FALSE(Checkpoints(folder_.path("none")).newest_whole(WholeCheck::kSizes).whole);
  EXPECT_THAT(error_of([&] { Checkpoints(folder_.write("file", "")).list(WholeCheck::kSizes); }),
              HasSubstr("cannot read the folder " + folder_.path("file")));
}

TEST_F(CheckpointsTest, ATornNewerOneIsSkippedAndSaid) {
  for (const int step : {1, 2, 3}) save(step);
  tear(3);
  std::filesystem::create_directory(folder_.path("step-4"));
  const Checkpoints::Newest newest = checkpoints_.newest_whole(WholeCheck::kSizes);
  ASSERT_TRUE(newest.whole);
  EXPECT_EQ(newest.whole->step, 2);
  ASSERT_THAT(steps_of(newest.torn), ElementsAre(4, 3));
  EXPECT_THAT(newest.torn[0].torn, HasSubstr("step-4/index.json: No such file"));
  EXPECT_THAT(newest.torn[1].torn,
              AllOf(HasSubstr("step-3/shard-1-of-2.safetensors"), HasSubstr("the index says")));
}

TEST_F(CheckpointsTest, AFileThatIsMissingTearsIt) {
  save(3);
  std::filesystem::remove(folder_.path("step-3/shard-0-of-2.safetensors"));
  EXPECT_THAT(why_torn(folder_.path("step-3"), WholeCheck::kSizes),
              HasSubstr("shard-0-of-2.safetensors: No such file"));
}

/// While this object lives, no further file can be opened.
class NoDescriptors {
 public:
  NoDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none = {.rlim_cur = 0, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

TEST_F(CheckpointsTest, AWholeOneThatCannotBeReadIsNotTorn) {
  save(3);
  const std::string said = error_of(ErrorCode::kUnavailable, [&] {
    const NoDescriptors none;
    why_torn(folder_.path("step-3"), WholeCheck::kSizes);
  });
  EXPECT_THAT(said, AllOf(HasSubstr("step-3/index.json"), HasSubstr("Too many open files")));
  EXPECT_EQ(why_torn(folder_.path("step-3"), WholeCheck::kSizes), "");
}

TEST_F(CheckpointsTest, ABytesChangeShowsInTheChecksumOnly) {
  save(1);
  save(2);
  std::string shard = folder_.read("step-2/shard-0-of-2.safetensors");
  shard.back() ^= 1;
  folder_.write("step-2/shard-0-of-2.safetensors", shard);
  EXPECT_EQ(checkpoints_.newest_whole(WholeCheck::kSizes).whole->step, 2);
  const Checkpoints::Newest newest = checkpoints_.newest_whole(WholeCheck::kChecksums);
  EXPECT_EQ(newest.whole->step, 1);
  EXPECT_THAT(newest.torn[0].torn, HasSubstr("CRC-32C"));
}

TEST_F(CheckpointsTest, AFolderOfAnotherStepIsTorn) {
  save(1);
  std::filesystem::rename(folder_.path("step-1"), folder_.path("step-5"));
  EXPECT_THAT(why_torn(folder_.path("step-5"), WholeCheck::kSizes),
              HasSubstr("its index says step 1"));
}

TEST_F(CheckpointsTest, TheLastOnesAreKept) {
  for (const int step : {1, 2, 3, 4}) save(step);
  EXPECT_THAT(checkpoints_.keep_last(2),
              ElementsAre(checkpoints_.path_of(2), checkpoints_.path_of(1)));
  EXPECT_THAT(steps(), ElementsAre(4, 3));
  EXPECT_THAT(checkpoints_.keep_last(2), IsEmpty());
  checkpoints_.keep_last(0);
  EXPECT_THAT(steps(), ElementsAre(4));
}

TEST_F(CheckpointsTest, TornOnesDoNotCountAndTheNewestWholeOneStays) {
  for (const int step : {1, 2, 3, 4, 5}) save(step);
  for (const int step : {2, 4, 5}) tear(step);
  checkpoints_.keep_last(2);
  EXPECT_THAT(steps(), ElementsAre(5, 4, 3, 1));
  checkpoints_.keep_last(1);
  EXPECT_THAT(steps(), ElementsAre(5, 4, 3));
}

TEST_F(CheckpointsTest, WhatWasLeftUnfinishedIsRemoved) {
  std::filesystem::create_directory(folder_.path("step-5.part"));
  folder_.write("step-5.part/shard-0-of-2.safetensors.part", "");
  folder_.write("a.part", "of another's");
  checkpoints_.remove_unfinished();
  EXPECT_THAT(folder_.names(), ElementsAre("a.part"));
}

}  // namespace
}  // namespace paceline::testing
