// Tests the figures of the cases that are quick enough for a test, whatever their values.
#include <gmock/gmock.h>

#include <filesystem>

#include "base/temporary_folder.h"
#include "bench/executor_rates.h"
#include "bench/input_rates.h"
#include "bench/kernel_rates.h"
#include "bench/runner.h"
#include "models/mlp.h"

namespace paceline::bench {
namespace {

TEST(TinyChain, IsAsManyKernelsAsOps) {
  for (const TinyChain& chain : tiny_chains()) make_runner(chain, 1)->run();
}

TEST(Runner, CountsTheCallsOfTheAccounting) {
  const models::Model& mlp = models::mlp_model();
  Runner runner(std::move(mlp.step_graphs(mlp.settings({{"hidden", "8"}}))[0]), {});
  runner.run();
  const std::int64_t first = runner.account_calls();
  runner.run();
  const std::int64_t second = runner.account_calls() - first;
  EXPECT_GT(second, 0);
  runner.run();
  EXPECT_EQ(runner.account_calls() - first, 2 * second);
}

TEST(KernelCases, AreOneKernelEach) {
  for (KernelCase& one : kernel_cases()) {
    SCOPED_TRACE(one.name);
    models::StepGraph step{
        .section = "", .graph = std::move(one.graph), .training = {}, .fetches = one.values};
    const Runner runner(std::move(step), {});
    EXPECT_EQ(runner.plan().kernels.size(), 1u);
  }
}

TEST(InputCases, MakeBatchesOfPhotosOfTheSizeThatTheyClaim) {
  const TemporaryFolder folder;
  std::string note;
  for (const InputCase& one : input_cases(folder.path(), 10, 2, note)) {
    SCOPED_TRACE(one.name);
    PipelineReader reader(one.pipeline);
    EXPECT_NE(reader.next(), nullptr);
  }
  EXPECT_THAT(note, ::testing::HasSubstr("2 JPEG files of 500x375 at quality "));
  for (const char* file : {"/photos/0/0.jpg", "/photos/1/1.jpg"}) {
    const auto bytes = std::filesystem::file_size(folder.path() + file);
    EXPECT_GE(bytes, 90'000u);
    EXPECT_LE(bytes, 120'000u);
  }
}

}  // namespace
}  // namespace paceline::bench
