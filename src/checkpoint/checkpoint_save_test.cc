#include "checkpoint/checkpoint_save.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <filesystem>
#include <thread>

#include "base/testing/error_of.h"
#include "checkpoint/best_keeper.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/testing/folder.h"
#include "checkpoint/testing/sample_checkpoint.h"
#include "checkpoint/testing/stopping_disk.h"

namespace paceline::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::int64_t newest_step(const std::string& folder) {
  const auto newest = Checkpoints(folder).newest_whole(WholeCheck::kChecksums);
  return newest.whole ? newest.whole->step : -1;
}

TEST(CheckpointSave, MakesTheFolderAndLeavesNothingElse) {
  const Folder folder;
  save_sample(folder.path("run/checkpoints"), 5, 1);
  EXPECT_THAT(folder.names(), ElementsAre("run", "run/checkpoints", "run/checkpoints/step-5",
                                          "run/checkpoints/step-5/index.json",
                                          "run/checkpoints/step-5/local-worker-0.safetensors",
                                          "run/checkpoints/step-5/shard-0-of-1.safetensors"));
}

TEST(CheckpointSave, ThereIsNoCheckpointBeforeItIsFinished) {
  const Folder folder;
  const Checkpoints checkpoints(folder.path());
  {
    CheckpointSave save(checkpoints, 5);
    CheckpointIndex index = sample_index(5, 2);
    write_sample_files(save.folder(), index);
    EXPECT_THAT(checkpoints.list(WholeCheck::kSizes), IsEmpty());
  }
  EXPECT_THAT(folder.names(), IsEmpty());
}

TEST(CheckpointSave, IsOfTheStepThatTheIndexSays) {
  const Folder folder;
  const Checkpoints checkpoints(folder.path());
  CheckpointSave save(checkpoints, 5);
  CheckpointIndex index = sample_index(6, 2);
  write_sample_files(save.folder(), index);
  EXPECT_EQ(save.finish(index), checkpoints.path_of(6));
  EXPECT_EQ(newest_step(folder.path()), 6);
}

TEST(CheckpointSave, ShardsAreWrittenAtOnceByMany) {
  const Folder folder;
  const Checkpoints checkpoints(folder.path());
  CheckpointSave save(checkpoints, 5);
  const CheckpointIndex whole = sample_index(5, 4);
  std::vector<CheckpointIndex> parts(4, whole);
  std::vector<std::thread> ps;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i].files = {whole.files[i]};
    ps.emplace_back([&, i] { write_sample_files(save.folder(), parts[i]); });
  }
  for (std::thread& thread : ps) thread.join();
  CheckpointIndex index = whole;
  index.files = {whole.files.back()};
  write_sample_files(save.folder(), index);
  for (const CheckpointIndex& part : parts) index.files.push_back(part.files[0]);
  const CheckpointReader reader(save.finish(index));
  EXPECT_EQ(reader.read("embedding").value.data<float>()[29], sample_value(5, "embedding", 0, 29));
}

TEST(CheckpointSave, RefusesAFileThatIsNotThereOrOfAnotherSize) {
  const Folder folder;
  const Checkpoints checkpoints(folder.path());
  CheckpointSave save(checkpoints, 5);
  CheckpointIndex index = sample_index(5, 2);
  write_sample_files(save.folder(), index);
  index.files[1].bytes += 1;
  EXPECT_THAT(error_of([&] { save.finish(index); }),
              AllOf(HasSubstr("shard-1-of-2.safetensors"), HasSubstr("the index says")));
  std::filesystem::remove(save.folder() + "/shard-0-of-2.safetensors");
  EXPECT_THAT(error_of([&] { save.finish(index); }), HasSubstr("shard-0-of-2.safetensors"));
  EXPECT_EQ(newest_step(folder.path()), -1);
}

TEST(CheckpointSave, OfAStepThatIsThereChangesNothingUnlessItIsTorn) {
  const Folder folder;
  const std::string path = save_sample(folder.path(), 5, 1);
  EXPECT_EQ(save_sample(folder.path(), 5, 2), path);
  EXPECT_EQ(CheckpointReader(path).index().variable("embedding").pieces.size(), 1u);
  folder.write("step-5/shard-0-of-1.safetensors", "");
  save_sample(folder.path(), 5, 2);
  EXPECT_EQ(CheckpointReader(path).index().variable("embedding").pieces.size(), 2u);
}

// Each save ends one call to the file system later than the save before, as if the process had died
// there. The older checkpoint or the new one must then be whole, and the next save must find no
// obstacle.
TEST(CheckpointSave, StoppedAnywhereItLeavesAWholeOne) {
  const Folder folder;
  save_sample(folder.path(), 1, 2);
  std::int64_t before = 1;
  bool stopped = true;
  int calls = 0;
  for (std::int64_t step = 2; stopped; ++step, ++calls) {
    const StoppingDisk disk(calls, StoppingDisk::Then::kDead);
    try {
      save_sample(folder.path(), step, 2, disk);
      Checkpoints(folder.path(), disk).keep_last(1);
      stopped = false;
    } catch (const StoppingDisk::Stopped&) {
    }
    const std::int64_t found = newest_step(folder.path());
    EXPECT_TRUE(found == step || found == before) << found << " after " << calls << " calls";
    before = found;
  }
  EXPECT_GT(calls, 20);
  EXPECT_THAT(Checkpoints(folder.path()).list(WholeCheck::kChecksums).size(), 1u);
  save_sample(folder.path(), 1000, 2);
  Checkpoints(folder.path()).keep_last(1);
  for (const std::string& name : folder.names()) EXPECT_THAT(name, HasSubstr("step-1000"));
}

// The run also keeps its best checkpoint. Wherever the process ends, the mark must name a whole
// checkpoint and its value.
TEST(CheckpointSave, StoppedAnywhereItLeavesTheBestOneWhole) {
  const Folder folder;
  const BestBy by{"loss/valid", false};
  const auto say = [](const std::string&) {};
  const auto value_of = [](std::int64_t step) { return 1.0 / double(step); };  // each is better
  save_sample(folder.path(), 1, 2);
  const Checkpoints here(folder.path());
  BestKeeper(here, by, say).note(1, value_of(1));
  bool stopped = true;
  int calls = 0;
  std::int64_t before = 1;
  for (std::int64_t step = 2; stopped; ++step, ++calls) {
    const StoppingDisk disk(calls, StoppingDisk::Then::kDead);
    const Checkpoints checkpoints(folder.path(), disk);
    try {
      BestKeeper keeper(checkpoints, by, say);
      save_sample(folder.path(), step, 2, disk);
      keeper.note(step, value_of(step));
      save_sample(folder.path(), 1000 + step, 2, disk);
      checkpoints.keep_last(1);
      stopped = false;
    } catch (const StoppingDisk::Stopped&) {
    }
    const FoundCheckpoint best = here.best(WholeCheck::kChecksums);
    EXPECT_TRUE(best.step == before || best.step == step) << best.step << " after " << calls;
    EXPECT_EQ(here.mark()->best->value, value_of(best.step));
    EXPECT_EQ(find_checkpoint(folder.path() + ":best", WholeCheck::kChecksums).path, best.path);
    before = best.step;
  }
  EXPECT_GT(calls, 40);
  const std::vector<FoundCheckpoint> left = here.list(WholeCheck::kChecksums);
  ASSERT_EQ(left.size(), 2u);
  EXPECT_EQ(left[1].step, before);
}

TEST(CheckpointSave, AFailureAnywhereLeavesTheOlderOneAndNoFiles) {
  const Folder folder;
  save_sample(folder.path(), 1, 2);
  const std::vector<std::string> before = folder.names();
  for (int calls = 0;; ++calls) {
    const StoppingDisk disk(calls, StoppingDisk::Then::kFull);
    const std::string error = error_of([&] { save_sample(folder.path(), 2, 2, disk); });
    if (newest_step(folder.path()) == 2) break;  // only the last sync failed, or nothing
    EXPECT_THAT(error, HasSubstr("No space left on device")) << calls;
    EXPECT_EQ(folder.names(), before) << calls;
  }
}

/// Mounts a file system in a folder, if this process may do so. The mount disappears with the
/// process.
bool mount_small(const std::string& path, unsigned long flags, const char* options) {
  return unshare(CLONE_NEWNS) == 0 &&
         mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("none", path.c_str(), "tmpfs", flags, options) == 0;
}

TEST(CheckpointSave, OnAFullDiskSaysSoAndTheOlderOneSurvives) {
  const Folder folder;
  if (!mount_small(folder.path(), 0, "size=24k")) GTEST_SKIP() << "only root can make a small disk";
  save_sample(folder.path(), 1, 2);
  const std::vector<std::string> before = folder.names();
  EXPECT_THAT(error_of([&] { save_sample(folder.path(), 2, 2); }),
              AllOf(HasSubstr("step-2.part/"), HasSubstr("No space left on device")));
  EXPECT_EQ(folder.names(), before);
  EXPECT_EQ(newest_step(folder.path()), 1);
  umount(folder.path().c_str());
}

TEST(CheckpointSave, OnAReadOnlyDiskSaysSo) {
  const Folder folder;
  if (!mount_small(folder.path(), MS_RDONLY, "")) GTEST_SKIP() << "only root can mount a disk";
  EXPECT_THAT(error_of([&] { save_sample(folder.path("run"), 2, 2); }),
              AllOf(HasSubstr(folder.path("run")), HasSubstr("Read-only file system")));
  umount(folder.path().c_str());
}

TEST(CheckpointSave, WhereNoFolderCanBeSaysSo) {
  const Folder folder;
  const std::string file = folder.write("file", "");
  EXPECT_THAT(error_of([&] { save_sample(file + "/checkpoints", 2, 2); }),
              AllOf(HasSubstr(file), HasSubstr("Not a directory")));
}

}  // namespace
}  // namespace paceline::testing
