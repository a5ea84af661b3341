// Tests that events of a job's tasks are logged line by line, and that the numbers that they report
// are printed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <sstream>

#include "tests/process.h"

namespace paceline::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

Finished train(const std::vector<std::string>& more) {
  std::vector<std::string> words = {"train",     "mlp",  "--hidden",  "16",      "--batch",
                                    "8",         "--ps", "1",         "--steps", "40",
                                    "--workers", "2",    "--threads", "1"};
  words.insert(words.end(), more.begin(), more.end());
  Finished run = run_paceline(words, std::chrono::seconds(60));
  EXPECT_EQ(run.status, 0) << run.output;
  return run;
}

TEST(Logs, LinesHaveTimeAndLevelBehindTheTasksName) {
  const std::string text = train({}).output;
  EXPECT_THAT(text, ContainsRegex("ps:0     \\| 20[0-9T:.-]+Z info worker:1 joined from "));
  EXPECT_THAT(text, HasSubstr("Step: 10 "));
}

TEST(Logs, InJsonEveryLineOfATaskIsAnObjectAndReportsStayAsTheyAre) {
  const std::string text = train({"--log-format", "json"}).output;
  std::istringstream lines(text);
  int joined = 0;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_THAT(line, Not(HasSubstr("| {")));
    if (!line.starts_with("{")) continue;
    const auto object = nlohmann::json::parse(line);
    EXPECT_TRUE(object.contains("time") && object.contains("level")) << line;
    const bool joins =
        object["message"].get<std::string>().find(" joined from ") != std::string::npos;
    if (joins) {
      EXPECT_EQ(object["task"], "ps:0");
      ++joined;
    }
  }
  EXPECT_EQ(joined, 2) << text;
  EXPECT_THAT(text, ContainsRegex("worker:[01] \\| Step: 10 "));
}

TEST(Logs, TheLevelSaysFromWhereOn) {
  EXPECT_THAT(train({"--log-level", "warning"}).output, Not(HasSubstr(" joined from ")));
  EXPECT_THAT(train({"--log-level", "debug"}).output, HasSubstr(" debug cluster ps=127.0.0.1:"));
  EXPECT_THAT(train({"--quiet"}).output, Not(HasSubstr(" joined from ")));
}

TEST(Logs, InJsonAnErrorIsALineToo) {
  const Finished run = run_paceline({"train", "mlp", "--hidden", "16", "--cluster",
                                     "ps=" + free_address() + ";worker=" + free_address(), "--task",
                                     "worker:0", "--join-timeout", "1", "--log-format", "json"},
                                    std::chrono::seconds(60));
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.output,
              HasSubstr("\"level\":\"error\",\"task\":\"worker:0\",\"message\":\"ps:0 at"));
  EXPECT_THAT(run.output, Not(HasSubstr("paceline: error")));
}

}  // namespace
}  // namespace paceline::testing
