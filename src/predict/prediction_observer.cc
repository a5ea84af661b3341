#include "predict/prediction_observer.h"

#include <fmt/format.h>

#include <memory>
#include <optional>

#include "base/failure_text.h"
#include "base/printed.h"
#include "kernels/device_kind.h"
#include "paceline/error.h"
#include "paceline/observer.h"
#include "predict/hosts_file.h"
#include "predict/machine_facts.h"
#include "predict/prediction_text.h"
#include "predict/shape_predictor.h"
#include "predict/step_cost.h"
#include "run/report/report.h"

namespace paceline {
namespace {

class PredictionObserver : public SessionObserver {
 public:
  explicit PredictionObserver(const PredictionOptions& options) : options_(options) {}

  // No worker trains before the job is initialised, so nothing of the job runs beside the
  // measurement.
  void joined(RunningSession& session) override {
    if (!options_.roof.empty()) return;
    try {
      const SeenHost seen = this_host();
      machine_ = seen.host;
      if (!seen.discarded.empty()) session.print(seen.discarded);
    } catch (const std::exception&) {
      // The error is dropped here: the prediction itself then fails, and says why.
    }
  }

  // A failing prediction stops no training.
  void begins(RunningSession& session) override {
    try {
      if (is_unknown(session)) {
        return session.print(
            "No speed is expected: other code computes the model, and how long that takes is known "
            "once one process has trained it; paceline predict -- COMMAND says what each way would "
            "bring");
      }
      expect_of(session);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kUsage) throw;  // a file that a flag names is missing or wrong
      session.print(fmt::format("No speed is expected: {}", error.what()));
    } catch (const std::exception& error) {
      session.print(fmt::format("No speed is expected: {}", failure_text(error)));
    }
  }

 private:
  static bool is_unknown(RunningSession& session) {
    const Plan& plan = session.plan(0);
    if (!is_computed_outside(plan)) return false;
    return this_pace_cache()
        .find(pace_key(plan, session.made_of().cluster.train.precision))
        .empty();
  }

  void expect_of(RunningSession& session) const {
    const PlannedSession made_of = session.made_of();
    PredictedStep step{
        .model = made_of.options.model,
        .request = {},
        .examples = double(made_of.options.examples_per_step) / double(made_of.cluster.towers)};
    step.request.graph = made_of.graphs[0];
    step.request.training = made_of.trainings.data();
    // The plan is borrowed: the session outlives the prediction.
    step.plan = std::shared_ptr<const Plan>(std::shared_ptr<const Plan>(), &session.plan(0));
    const RunPrediction expected = predict_run(step, made_of.cluster, options_, machine_);
    keep(expected, session.report());
    session.print("Expected: " + prediction_line(expected.own));
    if (expected.better) warn_of(*expected.better, expected.own, session);
  }

  static void keep(const RunPrediction& expected, Report& report) {
    const Prediction& own = expected.own;
    report.expected = {
        own.steps_per_s,    own.low, own.high, own.limit, std::string(name_of(own.limited_by)),
        flags_of(own.shape)};
    report.expected->machine = numbers_of(expected.machine);
    report.expected->workers = own.shape.workers;
    for (const Prediction& other : expected.others) {
      // The speeds count batches of this run, since a shape with another number of towers has
      // another batch.
      report.expected->other_ways.emplace_back(
          flags_of(other.shape), own.steps_per_s * other.times_alone / own.times_alone);
    }
  }

  static void warn_of(const Prediction& better, const Prediction& own, RunningSession& session) {
    const std::string flags = flags_of(better.shape);
    session.print(fmt::format("Warning: {} would make {} steps/s, {} × as many{}",
                              flags.empty() ? "one process, without --ps and --workers," : flags,
                              rounded(better.steps_per_s),
                              times_of(better.times_alone / own.times_alone),
                              better.shape.makes_local_steps() && !own.shape.makes_local_steps()
                                  ? ", each of which learns less (docs/strategies.md)"
                                  : ""));
  }

  const PredictionOptions options_;
  std::optional<PredictedHost> machine_;  // as measured before the job was initialised
};

// False for sessions of several trainings, and for batch norm over the batches of all workers:
// these are not predicted. False for GPUs, too: no run has verified the times that their roofs
// give, and a run that is slower than a wrong prediction would raise an alarm.
bool says_expected(const PlannedSession& session) {
  const Cluster& cluster = session.cluster;
  const bool several = cluster.distributed() || cluster.towers > 1;
  return several && cluster.is_chief() && session.trainings.size() == 1 &&
         !cluster.train.sync_batch_norm && device_kind(cluster.device.kind).is_predicted();
}

}  // namespace

MakeObserver say_prediction(const PredictionOptions& options) {
  return [options](const PlannedSession& session) {
    return says_expected(session) ? std::make_unique<PredictionObserver>(options) : nullptr;
  };
}

}  // namespace paceline
