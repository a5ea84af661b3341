// Tests that a field which is added to the list of a task's fields appears wherever reports are
// shown.
#include "run/report/report_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "dashboard/live_text.h"
#include "dashboard/page.h"
#include "dashboard/terminal_view.h"
#include "explain/report_window.h"
#include "paceline/error.h"
#include "run/report/testing/sample_report.h"

namespace paceline {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using Json = nlohmann::json;
using namespace std::chrono_literals;

/// The kilojoules that a task has used, a field that Paceline's reports do not have.
std::optional<double>& energy_of(const TaskReport& task) {
  static std::map<std::string, std::optional<double>> energy;
  return energy[task.task + task.unit];
}

class AddedFieldTest : public ::testing::Test {
 protected:
  AddedFieldTest() {
    energy_of(report_.tasks[0]) = 12.5;
    energy_of(report_.tasks[1]) = 2;
  }

  static ReportField<TaskReport> energy() {
    return {
        .name = "energy.total_kj",
        .unit = "kJ",
        .help = "The energy that it took.",
        .value = FieldPlace<TaskReport, std::optional<double>>{
            [](const TaskReport& task) -> const std::optional<double>& { return energy_of(task); },
            [](TaskReport& task) -> std::optional<double>& { return energy_of(task); }},
        .later = "energy",
        .is_of = [](const TaskReport& task) { return task.is_worker(); },
        .over_time = OverTime::kUseSum,
        .shown_at = 100,
        .metric = {.name = "task_energy_joules_total",
                   .help = "Joules that a task took.",
                   .times = 1e3,
                   .counter = true},
        .column = {.head = "kJ", .width = 8, .of_workers = true}};
  }
  static LiveRun live_run(const Report& report) {
    LiveRun run({.out = "", .steps = {}, .seconds = {}, .tasks = {"worker:0", "worker:1", "ps:0"}},
                TimePoint{1h});
    for (const TaskReport& task : report.tasks) {
      TaskProgress progress;
      progress.report.tasks = {task};
      run.heard(task.task, progress, TimePoint{1h});
    }
    return run;
  }

  const AddedReportField added_{energy()};
  const Report report_ = sample_report();
};

TEST_F(AddedFieldTest, IsWrittenAndReadBack) {
  const std::string text = report_.to_json();
  const Json tasks = Json::parse(text)["tasks"];
  EXPECT_EQ(tasks[0]["energy"]["total_kj"], 12.5);
  EXPECT_FALSE(tasks[2].contains("energy")) << "a ps has none";
  energy_of(report_.tasks[0]).reset();
  Report::from_json(text);
  EXPECT_EQ(energy_of(report_.tasks[0]), 12.5);
}

TEST_F(AddedFieldTest, MayMissInAFileOfAnEarlierVersion) {
  Json old = Json::parse(report_.to_json());
  for (Json& task : old["tasks"]) task.erase("energy");
  EXPECT_EQ(Report::from_json(old.dump()).tasks.size(), report_.tasks.size());
  old["tasks"][0]["energy"] = {{"total_kj", "much"}};
  EXPECT_THROW(Report::from_json(old.dump()), Error);
}

TEST_F(AddedFieldTest, IsAMetric) {
  EXPECT_THAT(metrics_text(live_run(report_), TimePoint{1h}),
              HasSubstr("# HELP paceline_task_energy_joules_total Joules that a task took.\n"
                        "# TYPE paceline_task_energy_joules_total counter\n"
                        "paceline_task_energy_joules_total{task=\"worker:0\"} 12500\n"
                        "paceline_task_energy_joules_total{task=\"worker:1\"} 2000\n"));
}

TEST_F(AddedFieldTest, IsAColumnOfThePageAndOfTop) {
  EXPECT_THAT(whole_page(), HasSubstr(R"("head":"kJ","help":"The energy that it took.",)"
                                      R"("path":"energy.total_kj")"));
  const std::string state = state_json(live_run(report_), TimePoint{1h});
  EXPECT_EQ(Json::parse(state)["tasks"][0]["energy"]["total_kj"], 12.5);
  const std::string view = terminal_view(state, 120, false);
  EXPECT_THAT(view, ContainsRegex("task +steps .* memory      kj  time\n"));
  EXPECT_THAT(view, ContainsRegex("worker:0 .* 12.5  "));
}

// The report of a part of a run, which explanations use, also has the field over that part.
TEST_F(AddedFieldTest, CountsForThePartOfARunThatIsExplained) {
  Report before = report_;
  TaskReport& earlier = before.tasks[0];
  earlier.unit = "earlier";
  earlier.use.seconds /= 2;
  energy_of(earlier) = 10;
  EXPECT_EQ(energy_of(report_between(before, report_).tasks[0]), 2.5);
}

}  // namespace
}  // namespace paceline
