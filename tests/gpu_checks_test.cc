// Tests scripts/gpu_checks without a GPU, and with the fake driver.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/process.h"

namespace paceline::testing {
namespace {

using ::testing::HasSubstr;

constexpr int kNotRun = 77;
const char* const kFakes = PACELINE_BUILD "/fakes";

class GpuChecks : public ::testing::Test {
 protected:
  static Finished run(const Words& environment, const Words& arguments) {
    const char* const script = PACELINE_SOURCE "/scripts/gpu_checks";
    Process process(join({{"env"}, environment, {script}, arguments}));
    const int status = process.wait_exit(std::chrono::seconds(880));
    return {status, process.output()};
  }

  // Returns the content of the only file that the script has written.
  nlohmann::json result() const {
    std::filesystem::path path;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      EXPECT_TRUE(path.empty()) << "two files";
      path = entry.path();
    }
    return nlohmann::json::parse(std::ifstream(path));
  }

  TemporaryFolder folder_;
};

TEST_F(GpuChecks, WithoutAGpuASentenceSaysThatNothingWasChecked) {
  const Finished checks = run({std::string("LD_LIBRARY_PATH=") + kFakes, "CUDA_VISIBLE_DEVICES="},
                              {"--out", folder_.path()});
  EXPECT_EQ(checks.status, kNotRun);
  EXPECT_EQ(checks.output,
            "Nothing was checked: no GPU can be used on this machine (cuInit: no CUDA-capable "
            "device is detected).\n");
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(GpuChecks, EveryPartIsWrittenDownOrSaysWhyNot) {
  const Finished checks = run({std::string("LD_LIBRARY_PATH=") + kFakes, "CUDA_HOME=/nonexistent"},
                              {"--most-bytes", "70000", "--models", "mlp,ptb", "--without",
                               "speeds,peers,sanitizer", "--seconds", "840", "--out",
                               folder_.path(), "--build", PACELINE_BUILD, "--commit", "1a2b3c4"});
  EXPECT_THAT(checks.output, HasSubstr("parts done"));
  const nlohmann::json written = result();
  EXPECT_EQ(written["device"], "Fake GPU");
  EXPECT_EQ(written["commit"], "1a2b3c4");
  EXPECT_THAT(std::string(written["date"]), ::testing::EndsWith("Z"));
  EXPECT_EQ(written["machine"]["device"]["architecture"], "sm_90");
  EXPECT_THAT(std::string(written["libraries"]["libcuda.so.1"]), HasSubstr(kFakes));
  for (const char* rate : {"to_device_pinned", "to_host_pageable", "both_ways_pinned"}) {
    EXPECT_GT(double(written["copies"]["65536"][rate]), 0) << rate;
  }
  EXPECT_GT(double(written["launches"]["waited_us"]), 0) << written["launches"];
  EXPECT_THAT(std::string(written["our_version"]["output"]), HasSubstr("cuda:0 Fake GPU"));
  EXPECT_EQ(written["trainings"]["failed"], "");
  for (const char* model : {"mlp", "ptb"}) {
    EXPECT_GT(double(written["trainings"]["losses"][model]["cuda"]["loss"]["last"]), 0) << model;
  }
  // cuDNN and cuBLAS need a real driver.
  for (const char* part : {"cudnn_device", "products"}) {
    EXPECT_FALSE(std::string(written[part]["failed"]).empty()) << part;
  }
  EXPECT_EQ(checks.status, 1) << "parts were not done";
}

TEST_F(GpuChecks, AKernelThatComputesWronglyFailsItsPart) {
  const Finished checks = run({std::string("LD_LIBRARY_PATH=") + kFakes, "CUDA_HOME=/nonexistent",
                               "FAKE_CUDA_SKIPPED_LAUNCH=12203"},
                              {"--most-bytes", "70000", "--out", folder_.path(), "--without",
                               "our_version,op_cases,trainings,speeds,peers,sanitizer"});
  EXPECT_EQ(checks.status, 1);
  EXPECT_THAT(std::string(result()["launches"]["failed"]), HasSubstr("adds 1"));
}

}  // namespace
}  // namespace paceline::testing
