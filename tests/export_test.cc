// Tests `paceline export`, which writes a model for PyTorch or as ONNX, and --init-from, which
// reads the file for PyTorch back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/process.h"

namespace paceline::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Export : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path(name); }
  std::string run(const Words& words, int status = 0) const {
    const Finished finished = run_paceline(words);
    EXPECT_EQ(finished.status, status) << finished.output;
    return finished.output;
  }
  TemporaryFolder folder_;
};

const Words kExported = {"train", "mlp", "--hidden", "16", "--batch", "4", "--threads", "1"};

TEST_F(Export, NamesAreThoseOfModulesAndValuesComeBack) {
  run(join({kExported, {"--steps", "3", "--out", path("run"), "--ps", "2", "--workers", "1"}}));
  const std::string file = path("model.safetensors");
  EXPECT_THAT(run({"export", path("run"), file}),
              AllOf(HasSubstr("6 tensors of 6 variables in"), HasSubstr("step-3")));
  EXPECT_THAT(run({"inspect", file}), AllOf(HasSubstr("layers.0.weight  float32  (16,256)"),
                                            HasSubstr("layers.4.bias    float32  (256)")));
  const Words again = {"--steps", "1", "--set", "learning_rate=0", "--out", path("again")};
  EXPECT_THAT(run(join({kExported, again, {"--init-from", file}})),
              HasSubstr("6 of 6 variables begin with the values in " + file));
  run({"export", path("again"), path("again.safetensors")});
  EXPECT_EQ(bytes_of(path("again.safetensors")), bytes_of(file));
}

TEST_F(Export, OfAnImageModelWithBatchNormAndMovingAverages) {
  run({"data", "images", "--out", path("data"), "--count", "60"});
  const Words of = {"--data", path("data"), "--batch", "10", "--steps", "4"};
  run(join({{"train", "resnet", "--depth", "14", "--out", path("resnet")}, of}));
  EXPECT_THAT(run({"export", path("resnet"), path("r.safetensors")}), HasSubstr("step-4"));
  EXPECT_THAT(run({"inspect", path("r.safetensors"), "--only", "units.2.*"}),
              AllOf(HasSubstr("units.2.norm1.running_mean"), HasSubstr("units.2.norm1.weight"),
                    HasSubstr("units.2.conv1.weight")));
  EXPECT_THAT(
      run(join({{"train", "resnet", "--depth", "14", "--init-from", path("r.safetensors")}, of})),
      HasSubstr("begin with the values in " + path("r.safetensors")));
  run(join({{"train", "cifar10", "--out", path("cifar10")}, of}));
  for (const Words& more : {Words{}, Words{"--averages"}}) {
    run(join({{"export", path("cifar10"), path(more.empty() ? "v.safetensors" : "a.safetensors")},
              more}));
  }
  EXPECT_THAT(run({"inspect", path("v.safetensors"), "--diff", path("a.safetensors")}),
              HasSubstr("dense.4.weight"));
  EXPECT_NE(bytes_of(path("v.safetensors")), bytes_of(path("a.safetensors")));
}

TEST_F(Export, AsOnnxHasTheWholeModel) {
  run(join({kExported, {"--steps", "3", "--out", path("run"), "--ps", "2", "--workers", "1"}}));
  EXPECT_THAT(run({"export", path("run"), path("mlp.onnx")}),
              AllOf(HasSubstr("mlp.onnx: 6 variables of"), HasSubstr("step-3"),
                    HasSubstr("  input   x float32 (batch,256)\n"),
                    HasSubstr("  output  predictions float32 (batch,256)\n")));
  EXPECT_THAT(bytes_of(path("mlp.onnx")),
              AllOf(HasSubstr("layer3/w"), HasSubstr("global_step"), HasSubstr("batch")));
}

TEST_F(Export, AsOnnxOfAnImageModelWithItsMovingAverages) {
  run({"data", "images", "--out", path("data"), "--count", "60"});
  run({"train", "cifar10", "--out", path("run"), "--data", path("data"), "--batch", "10", "--steps",
       "4"});
  for (const Words& more : {Words{}, Words{"--averages"}}) {
    const std::string file = path(more.empty() ? "v.onnx" : "a.onnx");
    EXPECT_THAT(run(join({{"export", path("run"), file}, more})),
                AllOf(HasSubstr("input   images float32 (batch,3,24,24)"),
                      HasSubstr("output  probabilities float32 (batch,10)")));
  }
  EXPECT_EQ(bytes_of(path("v.onnx")).size(), bytes_of(path("a.onnx")).size());
  EXPECT_NE(bytes_of(path("v.onnx")), bytes_of(path("a.onnx")));
}

TEST_F(Export, RefusesToWriteAsOnnxWhatIsNoModel) {
  run(join({kExported, {"--steps", "1", "--out", path("run")}}));
  const std::string file = path("m.onnx"), torch = path("m.safetensors");
  EXPECT_THAT(run({"export", path("run"), file, "--only", "layer1/*"}, 2),
              HasSubstr("--only: an ONNX file has the whole model: leave it out"));
  EXPECT_THAT(run({"export", path("run"), file, "--averages"}, 2),
              HasSubstr("has a moving average: leave it out"));
  EXPECT_THAT(run({"export", path("none"), file}, 1), HasSubstr(path("none")));
  run({"export", path("run"), torch});
  EXPECT_THAT(run({"export", torch, file}, 1),
              HasSubstr(torch + " is of no named model, not of `paceline train`"));
  const std::string shard = path("run/checkpoints/step-1/shard-0-of-1.safetensors");
  std::filesystem::resize_file(shard, std::filesystem::file_size(shard) - 8);
  EXPECT_THAT(run({"export", path("run"), file}, 1), HasSubstr("no whole checkpoint in"));
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST_F(Export, RefusesWhatItCannotWrite) {
  run(join({kExported, {"--steps", "1", "--out", path("run")}}));
  const std::string file = path("m.safetensors");
  EXPECT_THAT(run({"export", path("run"), path("m.bin")}, 2),
              HasSubstr("must end in .safetensors or .onnx"));
  EXPECT_THAT(run({"export", path("none"), file}, 1), HasSubstr(path("none")));
  EXPECT_THAT(run({"export", path("run") + ":best", file}, 1), HasSubstr("--keep-best NAME"));
  EXPECT_THAT(run({"export", path("run"), file, "--averages"}, 2),
              HasSubstr("has a moving average: leave it out"));
  EXPECT_THAT(run({"export", path("run"), file, "--only", "layer9*"}, 1),
              HasSubstr("no variable of"));
  EXPECT_THAT(run({"export"}, 2), HasSubstr("CHECKPOINT is missing"));
  EXPECT_THAT(run({"export", path("run"), path("no/m.safetensors")}, 1), HasSubstr(path("no")));
  EXPECT_FALSE(std::filesystem::exists(file));
  run({"export", path("run"), file, "--only", "layer1/*"});
  const Words other = {"train", "mlp", "--hidden", "8", "--batch", "4", "--steps", "1"};
  EXPECT_THAT(run(join({other, {"--init-from", file, "--init-only", "layer1/*"}}), 1),
              HasSubstr("layers.0.weight: (16,256) float32 in the checkpoint, (8,256) float32"));
  EXPECT_THAT(run(join({kExported, {"--steps", "1", "--init-from", file}}), 1),
              AllOf(HasSubstr("layer2/w: only in the model"), Not(HasSubstr("layer1/w:"))));
}

}  // namespace
}  // namespace paceline::testing
