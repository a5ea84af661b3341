#include "bench/figures.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace paceline::bench {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const Figure kAlone = figure_of("add", "ns", {30, 10, 20});
const Figure kBeside = figure_beside("tcp, 8 B", "us", {12, 24, 36}, "bare loop", {10, 20, 40});

TEST(Figures, ALineHasMedianSpreadAndRatio) {
  EXPECT_THAT(line_of(kAlone), HasSubstr("20.00 ns"));
  EXPECT_THAT(line_of(kAlone), HasSubstr("(15.00–25.00)"));
  EXPECT_THAT(line_of(kAlone), Not(HasSubstr("×")));
  EXPECT_THAT(line_of(kBeside), HasSubstr("1.200 × bare loop of 20.00 us (1.050–1.200)"));
}

TEST(Figures, TodayIsADate) {
  EXPECT_THAT(today(), ::testing::MatchesRegex("20[0-9][0-9]-[01][0-9]-[0-3][0-9]"));
}

TEST(Figures, OneValueHasNoSpread) {
  EXPECT_THAT(line_of(figure_of("peak", "MB", {3})), Not(HasSubstr("(")));
}

TEST(Figures, JsonHasTheDocumentedLayout) {
  const Circumstances where{.command = "paceline bench links",
                            .date = "2026-01-02",
                            .processor = "a processor",
                            .paceline = "0.1.0",
                            .onednn = "2.6",
                            .cores = 2,
                            .repeats = 3};
  const auto json =
      nlohmann::json::parse(to_json(where, {{"executor", {kAlone}}, {"links", {kBeside}}}));
  EXPECT_EQ(json["version"], 1);
  EXPECT_EQ(json["command"], "paceline bench links");
  EXPECT_EQ(json["date"], "2026-01-02");
  EXPECT_EQ(json["machine"]["processor"], "a processor");
  EXPECT_EQ(json["machine"]["cores"], 2);
  EXPECT_EQ(json["repeats"], 3);
  ASSERT_EQ(json["figures"].size(), 2u);
  const auto& alone = json["figures"][0];
  EXPECT_EQ(alone["case"], "executor");
  EXPECT_EQ(alone["name"], "add");
  EXPECT_EQ(alone["unit"], "ns");
  EXPECT_EQ(alone["value"]["median"], 20);
  EXPECT_EQ(alone["value"]["low"], 15);
  EXPECT_EQ(alone["value"]["high"], 25);
  EXPECT_EQ(alone["value"]["count"], 3);
  EXPECT_FALSE(alone.contains("beside"));
  const auto& beside = json["figures"][1]["beside"];
  EXPECT_EQ(beside["what"], "bare loop");
  EXPECT_EQ(beside["value"]["median"], 20);
  EXPECT_DOUBLE_EQ(beside["ratio"]["median"], 1.2);
  EXPECT_FALSE(beside.contains("terms"));
  EXPECT_FALSE(alone.contains("series"));
}

TEST(Figures, JsonHasTheTermsOfABoundAndWhatChangedOverTime) {
  Figure figure = figure_beside("8 workers", "steps/s", {20}, "bound (the link)", {24});
  figure.beside->terms = {{"the device", 3.5}, {"the link", 3}};
  figure.series = {{"worker:0", {{0, 2.5}, {1.5, 3}}}};
  const auto json = nlohmann::json::parse(to_json({}, {{"reports", {figure}}}))["figures"][0];
  EXPECT_EQ(json["beside"]["terms"], nlohmann::json::parse(R"([
      {"what": "the device", "value": 3.5}, {"what": "the link", "value": 3.0}])"));
  EXPECT_EQ(json["series"], nlohmann::json::parse(R"([
      {"name": "worker:0", "points": [[0.0, 2.5], [1.5, 3.0]]}])"));
}

}  // namespace
}  // namespace paceline::bench
