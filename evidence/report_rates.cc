#include "evidence/report_rates.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/nearest.h"
#include "base/real_clock.h"
#include "evidence/joining_run.h"
#include "evidence/recent_hosts.h"
#include "evidence/report_bound.h"
#include "evidence/report_run.h"
#include "evidence/row_progress.h"
#include "launch/lab/lab.h"
#include "paceline/error.h"
#include "predict/core_trip.h"
#include "predict/machine_facts.h"

namespace paceline::bench {
namespace {

constexpr std::int64_t kReportWords = 1'000'000;

/// The repeats of a row, as they are made.
struct Measured {
  std::vector<double> made, allowed;
  SpeedBound bound;  // of the last one
  std::vector<Series> series = {};
};

// A row during which the cores were moved is run once more.
double run_in_one_placement(const ReportRow& row, GeneratedText& text) {
  const double before = core_trip_seconds();
  const double made = run_report_row(row, text);
  return is_same_placement(before, core_trip_seconds()) ? made : run_report_row(row, text);
}

void measure_once(const ReportRow& row, GeneratedText& text, RecentHosts& hosts,
                  Measured& measured) {
  hosts.usual();
  measured.made.push_back(run_in_one_placement(row, text));
  measured.bound = ReportBound(row, text).by(hosts.usual());
  const double steps = measured.bound.steps_per_s;
  measured.allowed.push_back(row.rounds ? steps / counted_workers(row) : steps);
}

// The bound of a worker depends on how many others train meanwhile.
void measure_joining_once(const ReportRow& row, GeneratedText& text, RecentHosts& hosts,
                          Measured& measured) {
  const PredictedHost machine = hosts.usual();
  std::vector<double> allowed;
  ReportRow some = row;
  for (some.workers = 1; some.workers <= row.workers; ++some.workers) {
    measured.bound = ReportBound(some, text).by(machine);
    allowed.push_back(std::ranges::min(measured.bound.workers));
  }
  measured.series = run_joining(row);
  const KeptSpeed kept = least_kept(measured.series, allowed);
  measured.made.push_back(kept.per_s);
  measured.allowed.push_back(kept.allowed);
  measured.series.push_back(allowed_over_time(measured.series, allowed));
}

Figure measure(const ReportRow& row, int repeats, GeneratedText& text, RecentHosts& hosts) {
  Measured measured;
  for (int i = 0; i < repeats; ++i) {
    (row.apart_s > 0 ? measure_joining_once : measure_once)(row, text, hosts, measured);
  }
  Figure figure = figure_beside(row.full_name(), unit_of(row), measured.made,
                                fmt::format("bound ({})", measured.bound.limit), measured.allowed);
  for (const BoundTerm& term : measured.bound.terms) {
    figure.beside->terms.emplace_back(term.what, term.steps_per_s);
  }
  figure.series = std::move(measured.series);
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
  if (!selected(selection).empty()) return;
  if (!selected({selection.only}).empty()) {
    throw Error(ErrorCode::kUsage,
                fmt::format("--only {} --quick: the short selection has none of these rows; leave "
                            "out --quick",
                            selection.only));
  }
  const std::vector<std::string> names = report_names();
  throw Error(ErrorCode::kUsage,
              fmt::format("--only {}: is none of {}, nor a part of a row's name{}", selection.only,
                          fmt::join(names, ", "), did_you_mean(selection.only, names)));
}

void measure_reports(Recorder& recorder, const ReportSelection& selection,
                     const std::function<void()>& keep) {
  const std::vector<ReportRow> rows = possible(selected(selection), recorder);
  std::vector<double> seconds;
  seconds.reserve(rows.size());
  for (const ReportRow& row : rows) {
    seconds.push_back(row.expected_seconds() * recorder.repeats());
  }
  recorder.note(plan_text(seconds));
  const RowProgress progress(std::move(seconds));
  GeneratedText text(kReportWords);
  RecentHosts hosts(measured_host);
  const TimePoint begun = kRealClock.now();
  std::vector<std::string> failed;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string name = rows[i].full_name();
    recorder.progress(progress.text(i, kRealClock.now() - begun) + ": " + name);
    try {
      recorder.add(measure(rows[i], recorder.repeats(), text, hosts));
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
