// Tests whole programs on GPUs, with the fake driver of tests/fakes: what they learn, and what they
// print without a GPU.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/text_file.h"
#include "checkpoint/input_file.h"
#include "tests/process.h"

namespace paceline::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const char* const kFakeGpu = PACELINE_BUILD "/fakes";
// The rate is high, so that each step changes the losses by more than rounding does.
const Words kMlpOnGpu = {"train",    "mlp", "--batch", "8",
                         "--hidden", "32",  "--set",   "learning_rate=0.005"};

struct Losses {
  double first = 0, last = 0;
};

class Gpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(PACELINE_BUILD "/libpaceline_cuda.so")) {
      GTEST_SKIP() << "this build has no plug-in for CUDA (PACELINE_CUDA=OFF)";
    }
  }

  Finished run(const Words& settings, const Words& arguments) const {
    const Words fakes = {"env", std::string("LD_LIBRARY_PATH=") + kFakeGpu,
                         "XDG_CACHE_HOME=" + folder_.path("cache")};
    Process process(join({fakes, settings, paceline_words(arguments)}));
    const int status = process.wait_exit(std::chrono::seconds(600));
    return {status, process.output()};
  }

  // Returns the first and last loss of three steps.
  Losses losses(const Words& settings, const Words& arguments, const std::string& device) const {
    const std::string report = folder_.path(device + ".json");
    const Finished done =
        run(settings,
            join({arguments,
                  {"--steps", "3", "--threads", "2", "--device", device, "--report", report}}));
    EXPECT_EQ(done.status, 0) << done.output;
    EXPECT_THAT(done.output, Not(HasSubstr("no kernels of its own"))) << "no op of these models";
    if (done.status != 0) return {};
    const nlohmann::json loss = nlohmann::json::parse(std::ifstream(report))["loss"];
    return {loss["first"], loss["last"]};
  }
  // Returns how far the losses are from the processor's, in units of what rounding may change: at
  // most 1 if the GPU trains as the processor does.
  static double distance(const Losses& gpu, const Losses& cpu) {
    const auto of = [](double one, double other) {
      return std::abs(one - other) / (1e-4 * std::abs(other));
    };
    return std::max(of(gpu.first, cpu.first), of(gpu.last, cpu.last));
  }
  void expect_the_same(const Words& settings, const Words& arguments) const {
    const Losses cpu = losses(settings, arguments, "cpu"),
                 gpu = losses(settings, arguments, "cuda");
    EXPECT_NE(cpu.first, cpu.last);
    EXPECT_LE(distance(gpu, cpu), 1) << arguments[1] << ": " << gpu.first << " to " << gpu.last
                                     << ", not " << cpu.first << " to " << cpu.last;
  }

  TemporaryFolder folder_;
};

TEST_F(Gpu, MlpTrainsAsOnTheProcessor) { expect_the_same({}, kMlpOnGpu); }
TEST_F(Gpu, PtbTrainsAsOnTheProcessor) {
  const std::string text = folder_.path("text");
  ASSERT_EQ(run_paceline({"data", "corpus", "--out", text, "--words", "20000"}).status, 0);
  expect_the_same({}, {"train", "ptb", "--size", "test", "--data", text});
}
TEST_F(Gpu, Cifar10TrainsAsOnTheProcessor) {
  expect_the_same({}, {"train", "cifar10", "--batch", "2"});
}
TEST_F(Gpu, ResnetTrainsAsOnTheProcessor) {
  expect_the_same({}, {"train", "resnet", "--batch", "2", "--depth", "8"});
}

// Planted: the device computes each step with the weights of the step before.
TEST_F(Gpu, AStaleValueIsFound) {
  constexpr int kWeights = 256 * 32 * 4;  // the bytes of the first and the last layer
  const Losses cpu = losses({}, kMlpOnGpu, "cpu");
  const Losses stale =
      losses({"FAKE_CUDA_LATE_COPIES=" + std::to_string(kWeights)}, kMlpOnGpu, "cuda");
  EXPECT_NEAR(stale.first, cpu.first, 1e-4 * cpu.first) << "before the first step there is none";
  EXPECT_GT(distance(stale, cpu), 1);
}

TEST_F(Gpu, EachStrategyTrainsAsOnProcessors) {
  const Words two = {"FAKE_CUDA_DEVICES=2"};
  expect_the_same(two, join({kMlpOnGpu, {"--strategy", "sync", "--ps", "1", "--workers", "2"}}));
  expect_the_same(two, join({kMlpOnGpu, {"--ps", "0", "--workers", "2"}}));
  expect_the_same(two, join({kMlpOnGpu, {"--towers", "2"}}));
}

// Uses tcp. In shared memory, the values of an asynchronous ps may change while they are copied,
// which the fake driver would report as a fault.
TEST_F(Gpu, EachWorkerOfALauncherHasItsOwn) {
  const Finished two = run(
      {"FAKE_CUDA_DEVICES=2"},
      join({kMlpOnGpu,
            {"--steps", "3", "--device", "cuda", "--ps", "1", "--workers", "2", "--link", "tcp"}}));
  EXPECT_EQ(two.status, 0) << two.output;
  EXPECT_THAT(two.output, AllOf(HasSubstr("device cuda:0"), HasSubstr("device cuda:1")));
  const Finished one = run(
      {},
      join({kMlpOnGpu,
            {"--steps", "3", "--device", "cuda", "--ps", "1", "--workers", "2", "--link", "tcp"}}));
  EXPECT_NE(one.status, 0);
  EXPECT_THAT(one.output, HasSubstr("--device cuda:1: this machine shows 1 GPU, of which the last "
                                    "is cuda:0"));
}

// The GPU falls off in the worker's first step whose kernels are timed.
TEST_F(Gpu, AJobGoesOnWithoutAWorkerWhoseGpuFallsOff) {
  const Finished job = run({"FAKE_CUDA_DEVICES=2", "FAKE_CUDA_LAUNCHES=200"},
                           join({kMlpOnGpu,
                                 {"--steps", "60", "--device", "cuda", "--ps", "1", "--workers",
                                  "2", "--link", "tcp", "--on-failure", "continue"}}));
  EXPECT_THAT(job.output,
              AllOf(HasSubstr("worker:1 | paceline: error: [cuda:1] "),
                    HasSubstr("the GPU has fallen off the bus"), HasSubstr("60 global steps (")));
}

TEST_F(Gpu, WithoutAGpuASentenceSaysWhatToDo) {
  const Finished none = run({"FAKE_CUDA_DEVICES=0"}, join({kMlpOnGpu, {"--device", "cuda"}}));
  EXPECT_EQ(none.status, 1);
  EXPECT_THAT(none.output, HasSubstr("--device cuda: the driver finds no GPU: nvidia-smi says"));
  const Finished version = run({"FAKE_CUDA_DEVICES=2"}, {"version"});
  EXPECT_THAT(version.output,
              AllOf(HasSubstr("cuda:0 Fake GPU, 1024 MiB, sm_90"), HasSubstr("cuda:1 Fake GPU")));
  EXPECT_THAT(run({"FAKE_CUDA_VERSION=12040"}, {"version"}).output,
              HasSubstr("GPUs: the driver knows CUDA 12.4, and 13.0 is needed"));
}

TEST_F(Gpu, ItsRoofIsMeasuredAndWrittenBesideThatOfTheHost) {
  const std::string file = folder_.path("roof.toml");
  const Finished made = run({"FAKE_CUDA_DEVICES=2"}, {"roof", "--device", "cuda:1", "--out", file});
  ASSERT_EQ(made.status, 0) << made.output;
  const std::string text = read_text(file, 1 << 16);
  EXPECT_THAT(text, AllOf(HasSubstr("[[host]]\nname = "), HasSubstr("\ncores = "),
                          HasSubstr("\n[host.device]\nname = \"Fake GPU\"\ngflops = "),
                          HasSubstr("\nlaunch_us = "), HasSubstr("\ndownload_gbytes_per_s = ")));
  const Finished predicted = run({"FAKE_CUDA_DEVICES=0"}, {"predict", "mlp", "--device", "cuda",
                                                           "--hidden", "32", "--roof", file});
  EXPECT_EQ(predicted.status, 0) << predicted.output;
  EXPECT_THAT(predicted.output, HasSubstr("the times of Fake GPU are predicted from its roof file "
                                          "and were not verified by a run"));
}

TEST_F(Gpu, TheRoofOfOneThatIsNotThereIsRefused) {
  const Finished none = run({"FAKE_CUDA_DEVICES=0"}, {"roof", "--device", "cuda"});
  EXPECT_EQ(none.status, 1);
  EXPECT_THAT(none.output, HasSubstr("--device cuda: the driver finds no GPU"));
  for (const char* device : {"cpu", "sim", "gpu", "cuda:x"}) {
    const Finished other = run({}, {"roof", "--device", device});
    EXPECT_EQ(other.status, 2);
    EXPECT_THAT(other.output, HasSubstr("must be cuda or cuda:N")) << device;
  }
}

TEST_F(Gpu, AutoChoosesByItsRoof) {
  const std::string file = folder_.path("roof.toml");
  write_text_file("the roof", file,
                  "[[host]]\ncores = 4\ngflops = 200\ngbytes_per_s = 50\n[host.device]\n"
                  "name = \"H\"\ngflops = 50000\ngbytes_per_s = 4000\nlaunch_us = 5\n"
                  "upload_gbytes_per_s = 50\ndownload_gbytes_per_s = 40\n");
  const Finished trained =
      run({}, join({kMlpOnGpu,
                    {"--steps", "1", "--device", "cuda", "--strategy", "auto", "--roof", file}}));
  EXPECT_EQ(trained.status, 0) << trained.output;
  EXPECT_THAT(trained.output,
              AllOf(HasSubstr("--strategy auto: of "), HasSubstr("takes one process"),
                    HasSubstr("the times of H are predicted from its roof file")));
}

TEST_F(Gpu, AReportCountsTheKernelsThatAStepLaunches) {
  const std::string report = folder_.path("report.json");
  const Finished trained =
      run({}, join({kMlpOnGpu, {"--steps", "3", "--device", "cuda", "--report", report}}));
  ASSERT_EQ(trained.status, 0) << trained.output;
  const nlohmann::json task = nlohmann::json::parse(std::ifstream(report))["tasks"][0];
  EXPECT_GT(task["launches"], 10);
  EXPECT_LT(task["launches"], 200);
}

TEST_F(Gpu, APredictionForOneIsRefused) {
  const Finished predicted = run({}, {"predict", "mlp", "--device", "cuda", "--workers", "2"});
  EXPECT_EQ(predicted.status, 2);
  EXPECT_THAT(predicted.output, HasSubstr("--device cuda is not predicted"));
}

}  // namespace
}  // namespace paceline::testing
