// Tests `paceline inspect`, which shows checkpoints, and compares two.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "checkpoint/checkpoint_save.h"
#include "tests/process.h"

namespace paceline::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// Returns the index of "w" (2,2) with momentum, and of a variable with the name `second`.
CheckpointIndex index_of(std::int64_t step, const std::string& second) {
  CheckpointIndex index;
  index.global_step = step;
  index.notes = {{"model", "tiny"}};
  index.settings = {{"depth", "20"}, {"rates", "cosine"}};
  const std::string file = shard_name(0, 1);
  const std::vector<SavedSlot> slots = {{"m", DType::kFloat32}, {"t", DType::kInt64, true}};
  index.variables = {{"w", DType::kFloat32, {2, 2}, "made-up", slots, {{file, 0, 2}}},
                     {second, DType::kFloat32, {1}, "sgd", {}, {{file, 0, 1}}}};
  index.tasks = {{"worker:0", 600, 599, {{"epoch", 2}}, "", {}}};
  return index;
}

class Inspect : public ::testing::Test {
 protected:
  std::string save(std::int64_t step, float value, const std::string& second) {
    const Checkpoints checkpoints(folder_.path("checkpoints"));
    CheckpointSave save(checkpoints, step);
    CheckpointIndex index = index_of(step, second);
    const std::vector<NamedTensor> tensors = {{"w", Tensor::of<float>({2, 2}, {value, 0, 0, 4})},
                                              {"w:m", Tensor::of<float>({2, 2}, {0.5f, 0, 0, 0})},
                                              {"w:t", Tensor::of<std::int64_t>({1}, {1200})},
                                              {second, Tensor::of<float>({1}, {-2})}};
    index.files = {write_safetensors(save.folder() + "/" + shard_name(0, 1), tensors)};
    return save.finish(index);
  }
  Finished inspect(std::vector<std::string> words) {
    words.insert(words.begin(), "inspect");
    return run_paceline(words);
  }
  const TemporaryFolder folder_;
};

TEST_F(Inspect, ShowsStepVariablesSlotsNormsAndTasks) {
  const std::string path = save(1200, 3, "bias");
  const Finished run = inspect({path});
  EXPECT_EQ(run.status, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr(path + ": step 1,200, 1 file, "));
  EXPECT_THAT(run.output, HasSubstr("model: tiny\nsettings: depth=20, rates=cosine\n"));
  EXPECT_THAT(run.output, HasSubstr("w         float32  (2,2)  made-up  m 0.5, t 1,200     5\n"));
  EXPECT_THAT(run.output, HasSubstr("bias      float32  (1)    sgd                         2\n"));
  EXPECT_THAT(run.output, HasSubstr("5 elements in 2 variables\n"));
  EXPECT_THAT(run.output, HasSubstr("worker:0  epoch 2                      600      599\n"));
}

TEST_F(Inspect, TakesARunAnIndexAndALoneFile) {
  const std::string path = save(7, 3, "bias");
  EXPECT_THAT(inspect({folder_.path(".")}).output, HasSubstr("step-7: step 7"));
  EXPECT_THAT(inspect({path + "/index.json"}).output, HasSubstr("step 7"));
  const Finished lone = inspect({path + "/shard-0-of-1.safetensors"});
  EXPECT_THAT(lone.output, AllOf(HasSubstr("no step, 1 file"), HasSubstr("w:m")));
}

TEST_F(Inspect, SaysThatItSkippedATornOne) {
  save(7, 3, "bias");
  std::filesystem::create_directory(folder_.path("checkpoints/step-9"));
  EXPECT_THAT(inspect({folder_.path("checkpoints")}).output,
              AllOf(HasSubstr("passes over a checkpoint that is not whole"), HasSubstr("step-9"),
                    HasSubstr("step 7")));
}

TEST_F(Inspect, EndsThoughAShapeHasRowsWithoutNumber) {
  const std::string file = folder_.path("rows.safetensors");
  std::string header =
      R"({"w":{"dtype":"F32","shape":[9223372036854775807,0],"data_offsets":[0,0]}})";
  std::string bytes(8, '\0');
  bytes[0] = char(header.size());
  std::ofstream(file, std::ios::binary) << bytes << header;
  const Finished run = inspect({file});
  EXPECT_EQ(run.status, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("0 elements in 1 variable"));
  EXPECT_EQ(inspect({file, "--diff", file}).status, 0);
}

TEST_F(Inspect, ShowsOnlyWhatMatches) {
  const std::string path = save(7, 3, "bias");
  EXPECT_THAT(inspect({path, "--only", "b*"}).output, HasSubstr("1 element in 1 variable"));
  const Finished none = inspect({path, "--only", "x*"});
  EXPECT_EQ(none.status, 1);
  EXPECT_THAT(none.output, HasSubstr("matches 'x*'; it has w, bias"));
}

TEST_F(Inspect, SaysHowFarTwoAreApartAndWhatOnlyOneHas) {
  const std::string a = save(7, 3, "bias"), b = save(8, 5, "other");
  const Finished run = inspect({a, "--diff", b});
  EXPECT_EQ(run.status, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("w         (2,2)          2         0.5\n"));
  EXPECT_THAT(run.output, HasSubstr("only in " + a + ": bias (1)\n"));
  EXPECT_THAT(run.output, HasSubstr("only in " + b + ": other (1)\n"));
}

TEST_F(Inspect, ChecksEveryByteWhenAsked) {
  const std::string path = save(7, 3, "bias");
  EXPECT_THAT(inspect({path, "--check"}).output, HasSubstr("all checksums are correct"));
  write_safetensors(path + "/" + shard_name(0, 1),
                    std::vector<NamedTensor>{{"w", Tensor::of<float>({2, 2}, {1, 2, 3, 4})},
                                             {"w:m", Tensor::of<float>({2, 2}, {0.5f, 0, 0, 0})},
                                             {"w:t", Tensor::of<std::int64_t>({1}, {1200})},
                                             {"bias", Tensor::of<float>({1}, {-2})}});
  const Finished run = inspect({path, "--check"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.output, HasSubstr("shard-0-of-1.safetensors: CRC-32C"));
}

TEST_F(Inspect, ChecksEveryCheckpointOfAFolder) {
  const std::string older = save(7, 3, "bias"), newer = save(8, 5, "bias");
  const std::string shard = "/" + shard_name(0, 1);
  const Finished whole = inspect({folder_.path("."), "--check"});
  EXPECT_EQ(whole.status, 0) << whole.output;
  EXPECT_THAT(whole.output, AllOf(HasSubstr("/step-7: whole\n"), HasSubstr("/step-8: whole\n")));
  const auto change = [&](const std::string& path) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put('\x7f');
  };
  change(older + shard);
  const Finished old = inspect({folder_.path("checkpoints"), "--check"});
  EXPECT_EQ(old.status, 0) << old.output;
  EXPECT_THAT(old.output, AllOf(HasSubstr("/step-7: not whole: "), HasSubstr("CRC-32C"),
                                HasSubstr("/step-8: whole\n"), HasSubstr("step-8: step 8")));
  change(newer + shard);
  const Finished both = inspect({folder_.path("checkpoints"), "--check"});
  EXPECT_EQ(both.status, 1);
  EXPECT_THAT(both.output, AllOf(HasSubstr("/step-8: not whole: "), HasSubstr("/step-7: not whole"),
                                 HasSubstr("the newest checkpoint in ")));
}

TEST_F(Inspect, ChecksBothWhenTheyAreCompared) {
  const std::string a = save(7, 3, "bias"), b = save(8, 5, "bias");
  std::ofstream(b + "/index.json", std::ios::app) << "\n";
  const Finished run = inspect({a, "--diff", b, "--check"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.output, AllOf(HasSubstr("step-7: step 7"), HasSubstr("all checksums are correct"),
                                HasSubstr("index.json: it was changed")));
}

TEST_F(Inspect, RefusesWhatIsNoCheckpoint) {
  EXPECT_EQ(inspect({}).status, 2);
  EXPECT_EQ(inspect({"--help"}).status, 0);
  const Finished missing = inspect({"/nowhere"});
  EXPECT_EQ(missing.status, 1);
  EXPECT_THAT(missing.output, HasSubstr("/nowhere: No such file"));
  EXPECT_THAT(inspect({PACELINE_SOURCE "/README.md"}).output, HasSubstr("no safetensors file"));
}

}  // namespace
}  // namespace paceline::testing
