#include "checkpoint/checkpoint_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/testing/error_of.h"
#include "checkpoint/testing/folder.h"
#include "checkpoint/testing/sample_checkpoint.h"

namespace paceline::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

void expect_rows(const SavedRows& rows, const SavedVariable& variable, std::int64_t first_row,
                 std::int64_t count) {
  ASSERT_EQ(rows.value.shape(), Shape({count, 3}));
  ASSERT_EQ(rows.slots.size(), 3u);
  for (std::int64_t i = 0; i < 3 * count; ++i) {
    const std::int64_t element = 3 * first_row + i;
    EXPECT_EQ(rows.value.data<float>()[std::size_t(i)], sample_value(7, variable.name, 0, element));
    EXPECT_EQ(rows.slots[1].data<float>()[std::size_t(i)],
              sample_value(7, variable.name, 2, element));
  }
}

TEST(CheckpointReader, ReadsAnyRowsOfAnySplit) {
  for (const int shards : {1, 2, 3, 10}) {
    const Folder folder;
    const CheckpointReader reader(save_sample(folder.path(), 7, shards));
    const SavedVariable& variable = reader.index().variable("embedding");
    for (std::int64_t first = 0; first <= 10; ++first) {
      for (std::int64_t rows = 0; rows <= 10 - first; ++rows) {
        expect_rows(reader.read_rows(variable, first, rows), variable, first, rows);
      }
    }
  }
}

TEST(CheckpointReader, ReadsWholeVariablesOfAnyTypeAndRank) {
  const Folder folder;
  const CheckpointReader reader(save_sample(folder.path(), 7, 2));
  EXPECT_EQ(reader.read("scale").value.item<float>(), sample_value(7, "scale", 0, 0));
  EXPECT_EQ(float(reader.read("half").value.data<BFloat16>()[1]),
            float(BFloat16(sample_value(7, "half", 0, 1))));
  EXPECT_EQ(reader.read("bias").slots[2].item<std::int64_t>(), 7);
}

TEST(CheckpointReader, ACountIsTheLargestOfThePieces) {
  const Folder folder;
  const CheckpointReader reader(save_sample(folder.path(), 7, 2));
  const SavedVariable& variable = reader.index().variable("embedding");
  EXPECT_EQ(reader.read_rows(variable, 0, 5).slots[2].item<std::int64_t>(), 7);
  EXPECT_EQ(reader.read_rows(variable, 4, 2).slots[2].item<std::int64_t>(), 8);
}

TEST(CheckpointReader, RefusesRowsThatAreNotThere) {
  const Folder folder;
  const CheckpointReader reader(save_sample(folder.path(), 7, 2));
  const SavedVariable& variable = reader.index().variable("embedding");
  EXPECT_THAT(error_of([&] { reader.read_rows(variable, 8, 3); }),
              HasSubstr("rows 8 to 11 of 'embedding', which has 10"));
  EXPECT_THAT(error_of([&] { reader.read_rows(variable, -1, 3); }), HasSubstr("'embedding'"));
}

TEST(CheckpointReader, ReadsWhatIsATasksOwn) {
  const Folder folder;
  const CheckpointReader reader(save_sample(folder.path(), 7, 1));
  const SavedTask* task = reader.index().task("worker:0");
  ASSERT_NE(task, nullptr);
  const std::vector<NamedTensor> local = reader.read_local(*task);
  ASSERT_EQ(local.size(), 1u);
  EXPECT_EQ(local[0].name, "train/lstm/h");
  EXPECT_EQ(local[0].tensor.data<float>()[3], 4);
  EXPECT_TRUE(reader.read_local(*reader.index().task("worker:1")).empty());
  EXPECT_EQ(reader.index().task("worker:2"), nullptr);
}

TEST(CheckpointReader, OpensAnIndexAndALoneFileToo) {
  const Folder folder;
  const std::string path = save_sample(folder.path(), 7, 2);
  EXPECT_EQ(CheckpointReader(path + "/index.json").index().global_step, 7);
  const CheckpointReader lone(path + "/shard-1-of-2.safetensors");
  EXPECT_EQ(lone.index().global_step, CheckpointIndex::kNoStep);
  EXPECT_EQ(lone.read("embedding[5:10]").value.shape(), Shape({5, 3}));
  EXPECT_THAT(error_of([] { CheckpointReader("/nowhere"); }), HasSubstr("/nowhere: No such file"));
}

TEST(CheckpointReader, PicksVariablesByPattern) {
  const Folder folder;
  const CheckpointReader reader(save_sample(folder.path(), 7, 2));
  EXPECT_THAT(reader.matching("[bs]*"), ElementsAre("bias", "scale"));
  EXPECT_EQ(reader.matching("*").size(), 4u);
  EXPECT_THAT(error_of([&] { reader.matching("layer*"); }),
              AllOf(HasSubstr("matches 'layer*'"), HasSubstr("embedding, bias, half, scale")));
}

TEST(CheckpointReader, NamesATensorThatIsNotAsTheIndexSays) {
  const Folder folder;
  const std::string path = save_sample(folder.path(), 7, 1);
  const Tensor other = Tensor::of<float>({2}, {1, 2});
  write_safetensors(path + "/local-worker-0.safetensors",
                    std::vector<NamedTensor>{{"train/lstm/h", other}});
  EXPECT_THAT(error_of([&] { CheckpointReader{path}; }),
              HasSubstr("'train/lstm/h': (2) float32; the index says (2,2) float32"));
}

TEST(FindCheckpoint, LeadsToTheNewestWholeOne) {
  const Folder folder;
  const std::string checkpoints = folder.path("checkpoints");
  save_sample(checkpoints, 7, 1);
  const std::string newest = save_sample(checkpoints, 8, 1);
  EXPECT_EQ(find_checkpoint(folder.path(), WholeCheck::kSizes).path, newest);
  EXPECT_EQ(find_checkpoint(checkpoints, WholeCheck::kSizes).path, newest);
  EXPECT_EQ(find_checkpoint(newest, WholeCheck::kSizes).path, newest);
  EXPECT_EQ(find_checkpoint(newest + "/index.json", WholeCheck::kSizes).path,
            newest + "/index.json");
}

TEST(FindCheckpoint, NamesThoseThatItPassesOver) {
  const Folder folder;
  const std::string older = save_sample(folder.path(), 7, 1);
  const std::string newer = save_sample(folder.path(), 8, 1);
  std::string shard = folder.read("step-8/shard-0-of-1.safetensors");
  shard.back() ^= 1;
  folder.write("step-8/shard-0-of-1.safetensors", shard);
  const ChosenCheckpoint chosen = find_checkpoint(folder.path(), WholeCheck::kChecksums);
  EXPECT_EQ(chosen.path, older);
  ASSERT_EQ(chosen.passed_over.size(), 1u);
  EXPECT_THAT(passed_over_text(chosen.passed_over[0]),
              AllOf(HasSubstr("passes over a checkpoint that is not whole: " + newer),
                    HasSubstr("CRC-32C")));
  EXPECT_THAT(
      error_of(ErrorCode::kDataLoss, [&] { find_checkpoint(newer, WholeCheck::kChecksums); }),
      HasSubstr("CRC-32C"));
}

TEST(FindCheckpoint, TakesAFolderOfTensorFiles) {
  const Folder folder;
  const Tensor a = Tensor::of<float>({2}, {1, 2}), b = Tensor::of<float>({1}, {3});
  write_safetensors(folder.path("model-00001-of-00002.safetensors"),
                    std::vector<NamedTensor>{{"a", a}, {"unused", b}});
  write_safetensors(folder.path("model-00002-of-00002.safetensors"),
                    std::vector<NamedTensor>{{"b", b}});
  const std::string index = folder.write("model.safetensors.index.json", R"({
    "metadata": {"total_size": 12},
    "weight_map": {"b": "model-00002-of-00002.safetensors",
                   "a": "model-00001-of-00002.safetensors"}})");
  const std::string path = find_checkpoint(folder.path(), WholeCheck::kChecksums).path;
  EXPECT_EQ(path, index);
  const CheckpointReader reader(path);
  EXPECT_THAT(reader.matching("*"), ElementsAre("a", "b"));
  EXPECT_THAT(reader.read("a").value.data<float>(), ElementsAre(1, 2));
  EXPECT_THAT(reader.read("b").value.data<float>(), ElementsAre(3));
  folder.write("model.safetensors.index.json", R"({"weight_map": {"a": "../elsewhere"}})");
  EXPECT_THAT(error_of(ErrorCode::kDataLoss, [&] { CheckpointReader{path}; }),
              HasSubstr("'../elsewhere' is not beside it"));
  folder.write("model.safetensors.index.json", R"({"weight_map": {"a": "missing.safetensors"}})");
  EXPECT_THAT(error_of(ErrorCode::kNotFound, [&] { CheckpointReader{path}; }),
              HasSubstr("missing.safetensors: No such file"));
}

TEST(FindCheckpoint, SaysWhatIsThereInstead) {
  const Folder folder;
  EXPECT_THAT(error_of([&] { find_checkpoint(folder.path(), WholeCheck::kSizes); }),
              HasSubstr("no checkpoint in " + folder.path()));
  std::filesystem::create_directory(folder.path("step-3"));
  EXPECT_THAT(error_of([&] { find_checkpoint(folder.path(), WholeCheck::kSizes); }),
              AllOf(HasSubstr("no whole checkpoint"), HasSubstr("step-3/index.json")));
}

}  // namespace
}  // namespace paceline::testing
