#include "bench/report_rates.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/cores.h"
#include "base/nearest.h"
#include "base/real_clock.h"
#include "bench/report_bound.h"
#include "bench/report_run.h"
#include "bench/row_progress.h"
#include "cluster/lab/lab.h"
#include "paceline/error.h"

namespace paceline::bench {
namespace {

constexpr std::int64_t kReportWords = 1'000'000;

// Returns the part of the bound that is compared with the row's speed.
double allowed_per_s(const ReportRow& row, const SpeedBound& bound) {
  if (row.apart_s > 0) return std::ranges::min(bound.workers);
  return row.rounds ? bound.steps_per_s / counted_workers(row) : bound.steps_per_s;
}

Figure measured(const ReportRow& row, int repeats, GeneratedText& text) {
  const ReportBound bound(row, text);
  std::vector<double> made, allowed;
  SpeedBound last;
  std::vector<Series> series;
  for (int i = 0; i < repeats; ++i) {
    last = bound.by(measure_roof(DType::kFloat32, cores_of_machine()));
    ReportSpeed speed = run_report_row(row, text);
    made.push_back(speed.per_s);
    allowed.push_back(allowed_per_s(row, last));
    series = std::move(speed.series);
  }
  Figure figure = figure_beside(row.full_name(), unit_of(row), made,
                                fmt::format("bound ({})", last.limit), allowed);
  for (const BoundTerm& term : last.terms) {
    figure.beside->terms.push_back({term.what, term.steps_per_s});
  }
  figure.series = std::move(series);
  return figure;
}

std::vector<std::string> report_names() {
  std::vector<std::string> names;
  for (const ReportRow& row : report_rows()) {
    if (names.empty() || names.back() != row.report) names.push_back(row.report);
  }
  return names;
}

std::vector<ReportRow> selected(const ReportSelection& selection) {
  std::vector<ReportRow> rows = report_rows();
  std::erase_if(rows, [&](const ReportRow& row) {
    return row.full_name().find(selection.only) == std::string::npos ||
           (selection.quick && !row.quick);
  });
  return rows;
}

// Returns the rows that can be run here.
std::vector<ReportRow> possible(std::vector<ReportRow> rows, Recorder& recorder) {
  const std::string why = why_no_lab();
  if (why.empty()) return rows;
  const auto left_out = std::erase_if(rows, [](const ReportRow& row) { return row.gbps > 0; });
  if (left_out > 0) recorder.note("Rows with links of a limited rate are left out: " + why);
  return rows;
}

}  // namespace

void check(const ReportSelection& selection) {
  if (!selected({selection.only}).empty()) return;
  const std::vector<std::string> names = report_names();
  throw Error(ErrorCode::kUsage,
              fmt::format("--only {}: is none of {}, nor a part of a row's name{}", selection.only,
                          fmt::join(names, ", "), did_you_mean(selection.only, names)));
}

void measure_reports(Recorder& recorder, const ReportSelection& selection,
                     const std::function<void()>& keep) {
  const std::vector<ReportRow> rows = possible(selected(selection), recorder);
  std::vector<double> seconds;
  for (const ReportRow& row : rows) {
    seconds.push_back(row.expected_seconds() * recorder.repeats());
  }
  recorder.note(plan_text(seconds));
  const RowProgress progress(std::move(seconds));
  GeneratedText text(kReportWords);
  const TimePoint begun = kRealClock.now();
  std::vector<std::string> failed;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string name = rows[i].full_name();
    recorder.progress(progress.text(i, kRealClock.now() - begun) + ": " + name);
    try {
      recorder.add(measured(rows[i], recorder.repeats(), text));
      keep();
    } catch (const Error& error) {
      failed.push_back(name);
      recorder.note(fmt::format("{}: {}", name, error.what()));
    }
  }
  if (failed.empty()) return;
  throw Error(ErrorCode::kFailedPrecondition,
              fmt::format("[bench] {} of {} rows failed: {}", failed.size(), rows.size(),
                          fmt::join(failed, "; ")));
}

}  // namespace paceline::bench
