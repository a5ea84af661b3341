// Tests that docs/report.md and docs/dashboard.md list all fields of reports, and the metrics made
// of them.
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "dashboard/live_text.h"
#include "run/report/activities.h"
#include "run/report/report_fields.h"

namespace paceline::testing {
namespace {

/// Returns the part of a page from the first line that begins with `begin` to the next blank line.
std::string part_of(const std::string& page, const std::string& begin) {
  std::ifstream file(std::string(PACELINE_SOURCE) + "/docs/" + page);
  std::string part;
  for (std::string line; std::getline(file, line);) {
    if (part.empty() ? !line.starts_with(begin) : line.empty()) {
      if (!part.empty()) break;
      continue;
    }
    part += line + "\n";
  }
  EXPECT_NE(part, "") << page << " has no line that begins with " << begin;
  return part;
}

std::string row_of(const std::string& page, const std::string& begin) {
  const std::string part = part_of(page, begin);
  return part.substr(0, part.find('\n'));
}

std::set<std::string> code_words_in(const std::string& text) {
  static const std::regex code("`([^`]*)`");
  std::set<std::string> words;
  for (std::sregex_iterator at(text.begin(), text.end(), code), end; at != end; ++at) {
    words.insert((*at)[1]);
  }
  return words;
}

/// Returns the words in the first cells of a table, without its head.
std::set<std::string> rows_of(const std::string& table) {
  std::set<std::string> rows;
  std::istringstream lines(table);
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    rows.merge(code_words_in(line.substr(0, line.find('|', 1))));
  }
  return rows;
}

/// Returns the names of the members that begin with `within`, without that beginning; if `within`
/// is empty, all names that are not in `use`.
template <typename Record>
std::set<std::string> names_of(const std::string& within = "") {
  std::set<std::string> names;
  for (const ReportField<Record>& field : report_fields<Record>()) {
    const std::string name(field.name);
    if (within.empty() && !name.starts_with("use.")) names.insert(name);
    if (!within.empty() && name.starts_with(within)) names.insert(name.substr(within.size()));
  }
  names.erase("");
  return names;
}

std::string missing_in(const std::set<std::string>& words, const std::set<std::string>& names) {
  std::string missing;
  for (const std::string& name : names) missing += words.contains(name) ? "" : name + " ";
  return missing;
}

void expect_table(const std::string& page, const std::string& head,
                  const std::set<std::string>& names) {
  const std::set<std::string> rows = rows_of(part_of(page, head));
  EXPECT_EQ(missing_in(rows, names), "") << "is not in " << page << ", " << head;
  EXPECT_EQ(missing_in(names, rows), "") << "is no field, but in " << page << ", " << head;
}

TEST(ReportDocs, EachFieldHasARow) {
  expect_table("report.md", "| field of `use` |", names_of<TaskReport>("use."));
  expect_table("report.md", "| field of an entry of `links` |", names_of<LinkReport>());
  expect_table("report.md", "| field of `input` |", names_of<InputReport>());
  expect_table("report.md", "| field of `expected` |", names_of<ExpectedSpeed>());
  expect_table("dashboard.md", "| field of a task |", names_of<LiveTask>());
  // The page describes `use` and `kept` in parts of their own, and it may describe sections, too.
  std::set<std::string> of_task = names_of<TaskReport>();
  of_task.erase("kept");
  of_task.insert("use");
  expect_table("report.md", "| field of a task |", of_task);
  EXPECT_EQ(missing_in(rows_of(part_of("report.md", "| field |")), names_of<Report>()), "");
}

TEST(ReportDocs, FieldsOfSmallRecordsAreInTheRowsOfTheseRecords) {
  const auto words = [](const char* begin) { return code_words_in(row_of("report.md", begin)); };
  EXPECT_EQ(missing_in(words("| `loss.begin`"), names_of<LossWindow>()), "");
  EXPECT_EQ(missing_in(words("| `kernels`"), names_of<KernelReport>()), "");
  EXPECT_EQ(missing_in(words("| `stages`"), names_of<StageReport>()), "");
  std::set<std::string> of_ps = names_of<KeptValues>();
  of_ps.insert("kept");
  EXPECT_EQ(missing_in(code_words_in(part_of("report.md", "A ps in `tasks`")), of_ps), "");
}

TEST(ReportDocs, EachTagOfEventFilesHasARow) {
  std::set<std::string> tags;
  for (const ReportField<TaskReport>& field : report_fields<TaskReport>()) {
    const std::string tag(field.tag);
    if (!tag.empty() && !tag.ends_with('/')) tags.insert(tag);
    if (field.name != "share") continue;
    for (const ActivityWords& each : kActivityWords) tags.insert(tag + std::string(each.name));
  }
  EXPECT_EQ(missing_in(rows_of(part_of("summaries.md", "| tag |")), tags), "");
}

TEST(ReportDocs, EachMetricHasARow) {
  const LiveRun run({.out = "", .steps = {}, .seconds = {}, .tasks = {}}, TimePoint());
  std::istringstream lines(metrics_text(run, TimePoint()));
  std::set<std::string> metrics = {"expected_steps_per_second"};  // only of a run that expects one
  const std::string begin = "# HELP paceline_";
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(begin)) continue;
    metrics.insert(line.substr(begin.size(), line.find(' ', begin.size()) - begin.size()));
  }
  expect_table("dashboard.md", "| metric |", metrics);
}

}  // namespace
}  // namespace paceline::testing
