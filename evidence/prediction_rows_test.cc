// Tests the rows of the case `predictions`, and their file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

#include "base/temporary_folder.h"
#include "evidence/prediction_file.h"
#include "evidence/prediction_rows.h"
#include "paceline/error.h"

namespace paceline::bench {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(PredictionRows, HaveNamesOfTheirOwn) {
  std::vector<PredictionRow> rows = prediction_rows();
  const std::vector<PredictionRow> computed = computed_rows();
  rows.insert(rows.end(), computed.begin(), computed.end());
  std::set<std::string> names;
  for (const PredictionRow& row : rows) EXPECT_TRUE(names.insert(row.name()).second) << row.name();
}

TEST(PredictionRows, ThoseThatTheCoresComputeBeginWithOneProcessOfEachModel) {
  const std::vector<PredictionRow> rows = computed_rows();
  EXPECT_TRUE(std::ranges::is_partitioned(rows, &PredictionRow::alone));
  EXPECT_EQ(std::ranges::count_if(rows, &PredictionRow::alone), 4);
  for (const PredictionRow& row : rows)
    EXPECT_THAT(row.flags(), Not(Contains("sim"))) << row.name();
  const auto resnet = std::ranges::find(rows, "resnet", &PredictionRow::model);
  EXPECT_THAT(resnet->flags(), Contains("depth=20"));
}

TEST(PredictionRows, SimulatedDevicesAreAskedFor) {
  for (const PredictionRow& row : prediction_rows()) {
    EXPECT_THAT(row.flags(), Contains("--sim-step-ms")) << row.name();
  }
}

TEST(PredictionFile, KnowsTheRowsThatItHas) {
  const TemporaryFolder folder;
  const std::string path = folder.path("predictions.csv");
  const std::vector<PredictionRow> rows = computed_rows();
  const PredictionResult result{.host = {.name = "",
                                         .cores = 2,
                                         .bytes_per_s = 120e9,
                                         .thread_bytes_per_s = 70e9,
                                         .rule_bytes_per_s = 65e9,
                                         .thread_rule_bytes_per_s = 40e9,
                                         .core_trip_s = 50e-9},
                                .expected = {100, 95, 105, "the \"cores\", all", "kernels"},
                                .made = 90,
                                .roof_moved = 0.06};
  {
    const PredictionFile file(path);
    EXPECT_FALSE(file.knows(rows[0]));
    file.add(rows[0], result);
  }
  const PredictionFile again(path);
  EXPECT_TRUE(again.knows(rows[0]));
  EXPECT_FALSE(again.knows(rows[1]));
  std::ifstream file(path);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  EXPECT_THAT(text, HasSubstr("0.9000,\"the \"\"cores\"\", all\",kernels,65.0,yes,6.0,"
                              "0.00,0.00,0.00,0.00,50,70.0,40.0\n"));
}

TEST(PredictionFile, KnowsWhatOtherVersionsHaveMeasured) {
  const TemporaryFolder folder;
  const std::string path = folder.path("predictions.csv");
  const std::vector<PredictionRow> rows = prediction_rows();
  { const PredictionFile made(path); }
  std::ofstream(path, std::ios::app)
      << "a machine,2,2026-11-01,0.1.0 0123456789ab,70,\"" << rows[0].name() << "\"\n";
  const PredictionFile file(path);
  EXPECT_FALSE(file.knows(rows[0]));
  EXPECT_TRUE(file.has(rows[0]));
  EXPECT_FALSE(file.has(rows[1]));
}

TEST(PredictionFile, OneWithOtherColumnsIsRefused) {
  const TemporaryFolder folder;
  const std::string path = folder.path("predictions.csv");
  std::ofstream(path) << "machine,row\n";
  try {
    const PredictionFile file(path);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(path));
  }
}

TEST(PredictionFile, OneThatCannotBeWrittenIsRefused) {
  try {
    const PredictionFile file("/nonexistent/predictions.csv");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("--csv /nonexistent/predictions.csv: cannot be written"));
  }
}

TEST(RoofChange, IsThatOfProductsAndRules) {
  const PredictedHost before{
      .name = "", .flops_per_s = 100, .bytes_per_s = 100, .rule_bytes_per_s = 100};
  PredictedHost after = before;
  after.bytes_per_s = 50;
  EXPECT_EQ(roof_change(before, after), 0);
  after.rule_bytes_per_s = 90;
  EXPECT_NEAR(roof_change(before, after), 0.1, 1e-9);
  after.flops_per_s = 120;
  EXPECT_NEAR(roof_change(before, after), 0.2, 1e-9);
}

}  // namespace
}  // namespace paceline::bench
