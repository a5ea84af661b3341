// The command `paceline-evidence`: measures what the project's pages claim.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/memory_file.h"
#include "base/nearest.h"
#include "base/print_text.h"
#include "base/real_clock.h"
#include "base/text_file.h"
#include "bench/generated_text.h"
#include "bench/measuring.h"
#include "bench/recorder.h"
#include "bench/step_work.h"
#include "bench/summary.h"
#include "bench/train_run.h"
#include "cli/flags/command_line.h"
#include "cli/task_program.h"
#include "evidence/joining_run.h"
#include "evidence/prediction_file.h"
#include "evidence/prediction_rows.h"
#include "evidence/recent_hosts.h"
#include "evidence/report_bound.h"
#include "evidence/report_rows.h"
#include "evidence/row_progress.h"
#include "launch/lab/lab.h"
#include "paceline/error.h"
#include "predict/core_trip.h"
#include "predict/hosts_file.h"
#include "predict/machine_facts.h"
#include "predict/shape_predictor.h"
#include "run/standard_streams.h"

namespace paceline::bench {
namespace {

/// Selects the rows of the reports to measure.
struct ReportSelection {
  // Selects rows by a part of their name, "resnet" or "local steps"; empty: all rows.
  std::string only;
  bool quick = false;  // only a few rows of each report
};

// The functions below run a row of the reports for real.

std::vector<std::string> arguments_of_row(const ReportRow& row, GeneratedText& text) {
  std::vector<std::string> arguments = {"train",         row.report,
                                        "--device",      "sim",
                                        "--sim-step-ms", fmt::format("{}", row.device_ms),
                                        "--seconds",     fmt::format("{}", row.seconds)};
  const auto add = [&](const char* flag, const std::string& value) {
    arguments.insert(arguments.end(), {flag, value});
  };
  if (row.report == "ptb") add("--data", text.folder());
  if (row.ps > 0 || row.workers > 1) {
    add("--ps", std::to_string(row.ps));
    add("--workers", std::to_string(row.workers));
  }
  if (!row.strategy.empty()) add("--strategy", row.strategy);
  if (row.strategy == "local_sgd") add("--local-steps", std::to_string(kReportLocalSteps));
  if (row.backups > 0) add("--replicas-to-aggregate", std::to_string(row.workers - row.backups));
  if (row.towers > 1) add("--towers", std::to_string(row.towers));
  if (row.gbps > 0) {
    add("--lab-gbps", fmt::format("{}", row.gbps));
    row.place.empty() ? add("--lab-hosts", std::to_string(row.ps + row.workers))
                      : add("--lab-place", row.place);
  }
  if (row.bfloat16) add("--wire", "bfloat16");
  if (row.straggler) add("--sim-straggler", fmt::format("{}:3", row.workers - 1));
  return arguments;
}

// Returns the batches per second of a row of `fetch`. Every worker makes a step with its part of a
// batch at the same time, so a batch takes as long as a step. Workers are equally fast, so the
// chief's time is that of all. Tasks that share cores sleep while they wait. A simulated step that
// ends late makes the next one shorter, so only the mean time has a meaning.
double batches_per_s(const ReportRow& row) {
  const Report report = run_train({"train",         "fetch",
                                   "--ps",          std::to_string(row.ps),
                                   "--workers",     std::to_string(row.workers),
                                   "--threads",     "1",
                                   "--link",        "shm",
                                   "--device",      "sim",
                                   "--sim-step-ms", fmt::format("{}", row.device_ms),
                                   "--seconds",     fmt::format("{}", row.seconds),
                                   "--features",    "128",
                                   "--batch",       "16",
                                   "--hidden",      "256"});
  return 1e6 / value_of(report, "fetch/128,16,256", "remote_mean_us");
}

/// Returns "steps/s", "rounds/s" or "batches/s".
const char* unit_of(const ReportRow& row) {
  if (row.report == "fetch") return "batches/s";
  return row.rounds ? "rounds/s" : "steps/s";
}

/// Returns the row's speed: the steps per second of all devices together, or the row's own unit.
/// The row's workers start at the same time.
double run_report_row(const ReportRow& row, GeneratedText& text) {
  if (row.report == "fetch") return batches_per_s(row);
  Report report = run_train(arguments_of_row(row, text));
  const std::string left_out = row.straggler ? fmt::format("worker:{}", row.workers - 1) : "";
  std::erase_if(report.tasks, [&](const TaskReport& task) { return task.task == left_out; });
  const double steps = total_steps_per_s(report) * row.towers;
  return row.rounds ? steps / counted_workers(row) : steps;
}

constexpr std::int64_t kReportWords = 1'000'000;

/// The measurements of a row from its repeats so far.
struct Measured {
  std::vector<double> made, allowed;
  SpeedBound bound;  // bound of the last repeat
  std::vector<Series> series = {};
};

// Runs a row once more if the system moved the cores during it.
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

/// Throws kUsage if no row is selected.
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

/// The case `reports`: runs every row, and compares its speed with the bound by its devices, its
/// links and the rules' rate of memory on this machine (bench/recent_hosts.h). First prints how
/// long all rows take. Rows with links of a limited rate need root; without root, a note replaces
/// them. Calls `keep` after each row. Throws at the end if a row failed.
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

/// Selects the rows of the predictions to measure.
struct PredictionSelection {
  std::string only;     // selects rows that have this in their name; empty: all rows
  std::string csv;      // the file that rows are appended to
  double minutes = 60;  // no row begins after this time
  // True to measure the rows that this machine's cores compute, instead of those on simulated
  // devices.
  bool computed = false;
};

constexpr std::int64_t kPredictionWords = 300'000;
constexpr int kMostRuns = 4;  // the most runs of a row
constexpr std::size_t kLeastTrips = 15;
constexpr auto kLongestWait = std::chrono::minutes(2);
constexpr double kMostSetApart = 0.2;  // above it, other programs disturbed the machine

class PredictionRuns {
 public:
  /// Returns what the row expected and what it reached; nothing if it expected nothing.
  std::optional<PredictionResult> run(const PredictionRow& row) {
    wait_for_usual_placement();
    if (row.computed()) learn_pace(row);
    PredictionResult result{.host = row.computed() ? host_of_moment().host : hosts_.usual(),
                            .expected = {}};
    // Each row has its own file, since a second write would append to the first.
    const MemoryFile roof;
    write_text_file("the roof", roof.path(), roof_file_text(result.host));
    std::vector<std::string> arguments = arguments_of(row);
    arguments.insert(arguments.end(), {"--roof", roof.path()});
    if (row.alone()) result.expected = expected_alone(row, roof.path());
    const std::optional<ExpectedSpeed> expected = measure(arguments, result);
    if (row.computed()) result.roof_moved = roof_change(result.host, host_of_moment().host);
    if (row.alone()) return result;
    if (!expected) return {};
    result.expected = *expected;
    return result;
  }

 private:
  // A virtual machine whose cores have moved behaves like another machine. Rows are measured in the
  // cores' usual placement, unless that placement does not return.
  void wait_for_usual_placement() {
    constexpr auto kBetween = std::chrono::seconds(1);
    while (trips_.size() < kLeastTrips) {
      std::this_thread::sleep_for(kBetween);
      trips_.push_back(core_trip_seconds());
    }
    trips_.push_back(core_trip_seconds());
    const double usual = summarize(trips_).median;
    const TimePoint begun = kRealClock.now();
    double trip = trips_.back();
    while (!is_same_placement(trip, usual) && kRealClock.now() - begun < kLongestWait) {
      std::this_thread::sleep_for(kBetween);
      trip = core_trip_seconds();
    }
  }

  // Runs the row, again if the cores moved meanwhile, up to kMostRuns times. Returns the expected
  // speed.
  std::optional<ExpectedSpeed> measure(const std::vector<std::string>& arguments,
                                       PredictionResult& result) {
    for (int run = 1;; ++run) {
      const Report report = run_train(arguments);
      result.made = total_steps_per_s(report);
      const bool stayed = is_same_placement(result.host.core_trip_s, core_trip_seconds());
      if (stayed || run == kMostRuns) return report.expected;
      wait_for_usual_placement();
    }
  }

  std::vector<std::string> arguments_of(const PredictionRow& row) {
    std::vector<std::string> arguments = {"train", row.model};
    const std::vector<std::string> flags = row.flags();
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    if (row.model == "ptb") arguments.insert(arguments.end(), {"--data", text_.folder()});
    return arguments;
  }

  // Predictions know a step's kernels from earlier runs in one process: on all cores, and on the
  // one core that each of several workers has.
  void learn_pace(const PredictionRow& row) {
    if (!paced_.insert(row.model).second) return;
    PredictionRow one = row;
    one.strategy = "local_sgd";
    one.ps = 0;
    one.workers = 1;
    std::vector<std::string> arguments = arguments_of(one);
    run_train(arguments);
    arguments.insert(arguments.end(), {"--threads", "1"});
    run_train(arguments);
  }

  // Predicts the row here, since a run in one process prints no expected speed before its first
  // step.
  ExpectedSpeed expected_alone(const PredictionRow& row, const std::string& roof) {
    std::map<std::string, std::string> settings = row.settings;
    if (row.model == "ptb") settings["data"] = text_.folder();
    const models::Model& model = *models::find_model(row.model);
    const std::vector<models::StepGraph> steps = model.step_graphs(model.settings(settings));
    PredictionOptions options;
    options.roof = roof;
    const ShapePredictor predictor({row.model, request_of(steps.front())}, Cluster(), options);
    const Prediction made = predict_alone(predictor.job());
    return {made.steps_per_s, made.low, made.high, made.limit,
            std::string(name_of(made.limited_by))};
  }

  RecentHosts hosts_{measured_host};
  std::vector<double> trips_;    // between cores, at several moments
  std::set<std::string> paced_;  // models whose pace is known
  GeneratedText text_{kPredictionWords};
};

double percentile(std::vector<double> values, double part) {
  std::ranges::sort(values);
  return values[std::size_t(std::llround(part * double(values.size() - 1)))];
}

void say_set_apart(Recorder& recorder, const std::vector<std::string>& apart, std::size_t rows) {
  if (apart.empty()) return;
  recorder.note(fmt::format("Set apart, since the roof was another one afterwards, {} of {}: {}",
                            apart.size(), rows, fmt::join(apart, "; ")));
  if (double(apart.size()) <= kMostSetApart * double(rows)) return;
  recorder.note("These are more than a fifth: something else ran on the machine meanwhile");
}

/// The case `predictions`: runs configurations, each of which predicts its speed before its first
/// step, and appends the predicted and the measured speed to the file.
///
/// - Rows that the file already has from this version are left out, so that a run goes on where the
///   last one ended. Rows that no version has measured come first.
/// - The roof is measured before each row, and again after rows that the cores compute. If it has
///   moved, the row is set apart.
/// - A row waits for at most two minutes until the cores are as far from each other as usual. A run
///   during which the cores moved is repeated, at most three times.
void measure_predictions(Recorder& recorder, const PredictionSelection& selection) {
  const RealClock clock;
  const TimePoint begun = clock.now();
  const std::string no_lab = why_no_lab();
  if (!no_lab.empty() && !selection.computed)
    recorder.note("Rows with links of a limited rate are left out: " + no_lab);
  PredictionFile file(selection.csv);
  PredictionRuns runs;
  std::vector<double> errors;
  std::vector<std::string> apart;
  std::vector<PredictionRow> rows = selection.computed ? computed_rows() : prediction_rows();
  std::ranges::stable_sort(rows, {}, [&](const PredictionRow& row) { return file.has(row); });
  for (const PredictionRow& row : rows) {
    if (row.name().find(selection.only) == std::string::npos || file.knows(row)) continue;
    const bool expects = row.computed() || !row.alone();
    if ((row.gbps > 0 && !no_lab.empty()) || !expects) continue;
    if (double((clock.now() - begun).count()) * 1e-9 > 60 * selection.minutes) break;
    recorder.progress(row.name());
    const std::optional<PredictionResult> result = runs.run(row);
    if (!result) continue;
    file.add(row, *result);
    if (result->roof_moved.value_or(0) > kRoofMayMove) {
      apart.push_back(row.name());
    } else {
      errors.push_back(100 * std::abs(result->ratio() - 1));
    }
  }
  say_set_apart(recorder, apart, apart.size() + errors.size());
  if (errors.empty()) return recorder.note("No row was measured: the file may have them all");
  const double sum = std::accumulate(errors.begin(), errors.end(), 0.0);
  recorder.add(figure_of(fmt::format("error of {} predictions, mean", errors.size()), "%",
                         {sum / double(errors.size())}));
  recorder.add(figure_of("the same, median", "%", {percentile(errors, 0.5)}));
  recorder.add(figure_of("the same, 95th percentile", "%", {percentile(errors, 0.95)}));
}

using Arguments = std::vector<std::string>;

CommandLine reports_line() {
  return {
      "paceline-evidence reports",
      "Runs the clusters of five reports of slow training on emulated machines, and compares the "
      "speed of each with the bound by its devices, links and rules. Rows with links of a limited "
      "rate need root. Run nothing else meanwhile.",
      R"(Examples:
  paceline-evidence reports --quick
  paceline-evidence reports --only resnet --json figures.json
  scripts/make_reports_page figures.json)",
      {{"--only", "NAME", "Measure the rows with this in their name (resnet, 'local steps')",
        "Flags"},
       {"--quick", "", "Measure a few rows of each report", "Flags"},
       {"--json", "FILE", "Write every figure to this JSON file, too", "Flags"},
       {"--repeat", "N", "The number of runs of every row (default 1)", "Flags"}}};
}

CommandLine prediction_line() {
  return {"paceline-evidence predictions",
          "Runs configurations for real, and compares the speed of each with what it expected "
          "before its first step. A run goes on where the last one of the same version ended. Run "
          "nothing else meanwhile.",
          R"(Examples:
  paceline-evidence predictions --minutes 5
  paceline-evidence predictions --computed --only mlp)",
          {{"--only", "NAME", "Measure the rows with this in their name ('mlp, async')", "Flags"},
           {"--computed", "", "Train on this machine's cores, instead of on simulated devices",
            "Flags"},
           {"--csv", "FILE", "Append rows to this file (default predictions.csv)", "Flags"},
           {"--minutes", "M", "Begin no row after so many minutes (default 60)", "Flags"},
           {"--json", "FILE", "Write every figure to this JSON file, too", "Flags"}}};
}

Measuring begin(const std::string& name, const FlagValues& values, const Arguments& arguments,
                int repeats) {
  return {fmt::format("paceline-evidence {} {}", name, fmt::join(arguments, " ")),
          values.text("--json"), repeats};
}

int reports_command(const Arguments& arguments) {
  const std::optional<FlagValues> values = parse(reports_line(), arguments);
  if (!values) return 0;
  const ReportSelection selection{values->text("--only"), values->given("--quick")};
  check(selection);
  const int repeats = int(values->whole_number("--repeat", 1, kMostRepeats).value_or(1));
  Measuring measuring = begin("reports", *values, arguments, repeats);
  measuring.recorder().begin("reports", repeats);
  measure_reports(measuring.recorder(), selection, [&] { measuring.keep(); });
  measuring.keep();
  return 0;
}

int prediction_command(const Arguments& arguments) {
  const std::optional<FlagValues> values = parse(prediction_line(), arguments);
  if (!values) return 0;
  const PredictionSelection selection{
      .only = values->text("--only"),
      .csv = values->given("--csv") ? values->text("--csv") : "predictions.csv",
      .minutes = values->positive_number("--minutes").value_or(60),
      .computed = values->given("--computed")};
  Measuring measuring = begin("predictions", *values, arguments, 1);
  measuring.recorder().begin("predictions", 1);
  measure_predictions(measuring.recorder(), selection);
  measuring.keep();
  return 0;
}

struct Part {
  std::string_view name, help;
  int (*run)(const Arguments&);
  std::string_view old_name = "";  // the name that an earlier version used
};

constexpr std::array kParts = {
    Part{"reports", "The clusters of five reports of slow training, compared with their bounds",
         reports_command},
    Part{"predictions",
         "Configurations run for real, compared with what each expected before step 1",
         prediction_command, "foresight"}};

std::string help_text() {
  std::string text =
      "Measures what Paceline's pages claim. Runs the command `paceline` that lies beside it.\n\n"
      "Usage: paceline-evidence PART …\n\n";
  for (const Part& part : kParts) text += fmt::format("  {:<12}{}\n", part.name, part.help);
  return text + "\n--help after a part lists its flags.\n";
}

int run(const Arguments& arguments) {
  if (arguments.empty()) throw Error(ErrorCode::kUsage, "the part is missing\n\n" + help_text());
  const std::string& name = arguments.front();
  if (name == "--help" || name == "-h") {
    fmt::print("{}", help_text());
    return 0;
  }
  std::vector<std::string_view> names;
  for (const Part& part : kParts) {
    const bool is_old = !part.old_name.empty() && part.old_name == name;
    if (is_old) {
      print_text(stderr,
                 fmt::format("paceline-evidence {} is now called {}: the next version reads "
                             "the new name only\n",
                             name, part.name));
    }
    if (is_old || part.name == name) return part.run({arguments.begin() + 1, arguments.end()});
    names.push_back(part.name);
  }
  throw Error(ErrorCode::kUsage, fmt::format("unknown part '{}'{} ({})", name,
                                             did_you_mean(name, names), fmt::join(names, ", ")));
}

}  // namespace
}  // namespace paceline::bench

int main(int argc, char** argv) {
  paceline::prepare_standard_streams();
  return paceline::report_errors([&] { return paceline::bench::run({argv + 1, argv + argc}); });
}
