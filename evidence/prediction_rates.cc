#include "evidence/prediction_rates.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "base/memory_file.h"
#include "base/real_clock.h"
#include "base/text_file.h"
#include "bench/generated_text.h"
#include "bench/step_work.h"
#include "bench/summary.h"
#include "bench/train_run.h"
#include "evidence/prediction_file.h"
#include "evidence/prediction_rows.h"
#include "evidence/recent_hosts.h"
#include "launch/lab/lab.h"
#include "predict/core_trip.h"
#include "predict/hosts_file.h"
#include "predict/machine_facts.h"
#include "predict/shape_predictor.h"

namespace paceline::bench {
namespace {

constexpr std::int64_t kPredictionWords = 300'000;
constexpr int kMostRuns = 4;  // of a row
constexpr std::size_t kLeastTrips = 15;
constexpr auto kLongestWait = std::chrono::minutes(2);
constexpr double kMostSetApart = 0.2;  // of the rows, or the machine was not left alone

class PredictionRuns {
 public:
  /// Returns what the row expected and made; nothing when nothing was expected.
  std::optional<PredictionResult> run(const PredictionRow& row) {
    wait_for_usual_placement();
    if (row.computed()) learn_pace(row);
    PredictionResult result{.host = row.computed() ? host_of_moment().host : hosts_.usual(),
                            .expected = {}};
    const MemoryFile
        roof;  // a new one, since what is written to a descriptor follows what is there
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
  // A virtual machine whose cores are moved to others is another machine. Rows are measured in the
  // usual placement of the cores, unless it stays away.
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

  // Runs it, once more where the cores were moved meanwhile, but not for ever. Returns what it
  // expected.
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

  // Predictions know the kernels of a step from earlier runs in one process: on all cores, and on
  // the one that a worker among several has.
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

  // A run in one process says nothing before its first step.
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
  std::vector<double> trips_;    // between cores, at many moments
  std::set<std::string> paced_;  // models
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

}  // namespace

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

}  // namespace paceline::bench
