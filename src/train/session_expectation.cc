// The speed that a session of several tasks expects, before its first step and beside what it made.
#include <fmt/format.h>

#include "base/printed.h"
#include "kernels/device_kind.h"
#include "paceline/error.h"
#include "predict/forecast_text.h"
#include "predict/hosts_file.h"
#include "predict/machine_facts.h"
#include "train/kernel_seconds.h"
#include "train/prediction.h"
#include "train/session_impl.h"

namespace paceline {

// Several trainings and sums in the middle of a step are not predicted.
bool Session::Impl::says_expected() const {
  const bool one = trainings.size() == 1 && !cluster.sync_batch_norm;
  // Only a program that was started for it tells its user anything.
  const bool program = run_options.log != nullptr;
  const bool several = cluster.distributed() || cluster.towers > 1;
  return program && several && cluster.is_chief() && one;
}

// No worker trains before the job is initialised: nothing of it runs beside the measurement.
void Session::Impl::look_at_machine() {
  if (!says_expected() || !run_options.prediction.roof.empty()) return;
  try {
    const SeenHost seen = this_host();
    machine_ = seen.host;
    if (!seen.discarded.empty()) console.print(seen.discarded);
  } catch (const std::exception&) {
    // The prediction fails then, and says why.
  }
}

// A prediction that fails stops no training.
void Session::Impl::say_expected() {
  if (!says_expected()) return;
  try {
    PredictedStep step{.model = options.model,
                       .request = {},
                       .examples = double(options.examples_per_step) / double(cluster.towers)};
    step.request.graph = graphs[0];
    step.request.training = trainings.data();
    // It is borrowed: the session outlives the prediction.
    step.plan =
        std::shared_ptr<const Plan>(std::shared_ptr<const Plan>(), trained[0].plans[0].plan.get());
    const Expectation expected = expect(step, cluster, run_options.prediction, machine_);
    const Forecast& own = expected.own;
    report.expected = {
        own.steps_per_s,  own.low, own.high, own.limit, std::string(name_of(own.limited_by)),
        flags_of(own.way)};
    console.print("Expected: " + forecast_line(own));
    report.expected->machine = numbers_of(expected.machine);
    report.expected->workers = own.way.workers;
    for (const Forecast& other : expected.others) {
      // In steps of this run's batch: a step of other numbers of towers has another one.
      report.expected->other_ways.emplace_back(
          flags_of(other.way), own.steps_per_s * other.times_alone / own.times_alone);
    }
    if (!expected.better) return;
    const Way& way = expected.better->way;
    const std::string flags = flags_of(way);
    console.print(fmt::format("Warning: {} would make {} steps/s, {} × as many{}",
                              flags.empty() ? "one process, without --ps and --workers," : flags,
                              rounded(expected.better->steps_per_s),
                              times_of(expected.better->times_alone / own.times_alone),
                              way.makes_local_steps() && !own.way.makes_local_steps()
                                  ? ", each of which learns less (docs/strategies.md)"
                                  : ""));
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kUsage) throw;  // a file that a flag names is none
    console.print(fmt::format("No speed is expected: {}", error.what()));
  } catch (const std::exception& error) {
    console.print(fmt::format("No speed is expected: {}", failure_text(error)));
  }
}

// A step that was made alone tells the predictions of later runs how long its kernels take.
void Session::Impl::keep_pace() const {
  if (cluster.distributed() || !device_kind(cluster.device.kind).meets_roof ||
      trained.size() != 1 || cluster.towers > 1) {
    return;
  }
  if (const std::optional<double> seconds = kernel_seconds(*task_at_end_)) {
    const Plan& plan = *trained[0].plans[0].plan;
    this_pace_cache().keep(pace_key(plan, cluster.precision),
                           {.threads = device->threads().threads(),
                            .seconds = *seconds,
                            .others_share = task_at_end_->use.pressure.queued.value_or(0)});
  }
}

}  // namespace paceline
