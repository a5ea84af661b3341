#include "evidence/report_rows.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <utility>

#include "evidence/report_bound.h"

namespace paceline::bench {
namespace {

constexpr double kMinute = 60;

double seconds_of(bool quick) {
  double seconds = 0;
  for (const ReportRow& row : report_rows()) {
    if (row.quick || !quick) seconds += row.expected_seconds();
  }
  return seconds;
}

TEST(ReportRows, AllAreMeasuredInAnHourAndTheShortSelectionInEightMinutes) {
  EXPECT_LT(seconds_of(false), 60 * kMinute);
  EXPECT_LT(seconds_of(true), 8 * kMinute);
  EXPECT_GT(seconds_of(true), 0);
}

TEST(ReportRows, EachHasANameOfItsOwn) {
  std::set<std::string> names;
  for (const ReportRow& row : report_rows()) EXPECT_TRUE(names.insert(row.full_name()).second);
}

// Each figure from other systems must name a row that exists.
TEST(ReportRows, WhatOthersMadeIsOfARowThatThereIs) {
  std::set<std::string> names;
  for (const ReportRow& row : report_rows()) names.insert(row.full_name());
  const auto others =
      nlohmann::json::parse(std::ifstream(PACELINE_SOURCE "/bench/peers/reports.json"));
  for (const char* who : {"reported", "tensorflow"}) {
    for (const auto& [name, speed] : others[who]["steps_per_s"].items()) {
      EXPECT_TRUE(names.contains(name)) << name;
    }
  }
}

class ReportBoundTest : public ::testing::Test {
 protected:
  SpeedBound bound(const std::string& name) {
    const std::vector<ReportRow> rows = report_rows();
    const auto row = std::ranges::find(rows, name, &ReportRow::full_name);
    if (row == rows.end()) throw std::out_of_range(name);
    return ReportBound(*row, text_).by({.name = "", .rule_bytes_per_s = 60e9});
  }
  GeneratedText text_{20'000};
};

TEST_F(ReportBoundTest, OnlyOneShapeNeedsMoreThanALink) {
  for (const auto& [shape, steps] :
       {std::pair{1, 6.0}, {2, 6.0}, {3, 12.0}, {5, 24.0}, {6, 24.0}}) {
    EXPECT_NEAR(bound(fmt::format("resnet, shape {}, 1 Gbit/s", shape)).steps_per_s, steps, 0.1);
  }
  const SpeedBound four = bound("resnet, shape 4, 1 Gbit/s");
  EXPECT_NEAR(four.steps_per_s, 23.1, 0.2);
  EXPECT_EQ(four.limit, "the link of host 0");
}

TEST_F(ReportBoundTest, NarrowNumbersDoubleALinkAndLeaveTheMemoryAsItIs) {
  const SpeedBound wide = bound("mlp, 1 ps + 1 worker, 1 Gbit/s");
  const SpeedBound narrow = bound("mlp, 1 ps + 1 worker, 1 Gbit/s, bfloat16 wire");
  EXPECT_NEAR(wide.steps_per_s, 1.57, 0.02);
  EXPECT_NEAR(narrow.steps_per_s, 2 * wide.steps_per_s, 0.02);
  EXPECT_EQ(wide.terms.back().what, "the memory that rules pass over");
  EXPECT_EQ(wide.terms.back().steps_per_s, narrow.terms.back().steps_per_s);
}

TEST_F(ReportBoundTest, LocalStepsAreThoseOfSoManyProcesses) {
  const double alone = bound("resnet, one process").steps_per_s;
  for (const char* rate : {"1 Gbit/s", "100 Mbit/s"}) {
    EXPECT_NEAR(bound(fmt::format("resnet, shape 4, {}, local steps", rate)).steps_per_s, 8 * alone,
                1e-6);
  }
  // Without local steps, the row's one parameter server would have to move ten times what its link
  // carries.
  EXPECT_EQ(bound("ptb, 1 ps + 4 workers, 1 Gbit/s").limit, "the link of host 0");
  EXPECT_LT(bound("ptb, 1 ps + 4 workers, 1 Gbit/s").steps_per_s, 12);
  EXPECT_GT(bound("ptb, 1 ps + 4 workers, 1 Gbit/s, local steps").steps_per_s, 108);
}

TEST_F(ReportBoundTest, WorkersThatDivideABatchOnlyTakeTheirParts) {
  EXPECT_NEAR(bound("fetch, 1 worker, 1600 us of computing a step").steps_per_s, 625, 1e-6);
  EXPECT_NEAR(bound("fetch, 8 workers, 200 us of computing a step").steps_per_s, 8 * 5000.0, 1e-6);
}

TEST_F(ReportBoundTest, RoundsReadAllGradientsAndUpdateOnceOrInEachWorker) {
  const SpeedBound sync = bound("mlp, 1 ps + 4 workers, sync");
  const SpeedBound reduced = bound("mlp, 4 workers, all-reduce");
  EXPECT_LT(reduced.steps_per_s, sync.steps_per_s);
}

}  // namespace
}  // namespace paceline::bench
