#include "bench/train_run.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "paceline/error.h"

namespace paceline::bench {
namespace {

Report report_of(const std::vector<std::optional<double>>& peaks) {
  Report report;
  for (const auto& peak : peaks) report.tasks.emplace_back().use.peak_memory = peak;
  return report;
}

TEST(PeakMemory, IsThatOfTheLargestTask) {
  EXPECT_EQ(peak_memory(report_of({3e8})), 3e8);
  EXPECT_EQ(peak_memory(report_of({1e8, 3e8, 2e8})), 3e8);
}

TEST(PeakMemory, RefusesATaskThatDidNotMeasureIt) {
  EXPECT_THROW(peak_memory(report_of({1e8, std::nullopt})), Error);
}

}  // namespace
}  // namespace paceline::bench
