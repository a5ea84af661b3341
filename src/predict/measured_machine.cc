#include "predict/measured_machine.h"

#include <exception>
#include <memory>
#include <optional>

#include "base/cores.h"
#include "kernels/cpu/instruction_set.h"
#include "kernels/device_kind.h"
#include "paceline/observer.h"
#include "params/strategy/strategies.h"
#include "predict/bound.h"
#include "predict/machine_facts.h"
#include "run/report/report.h"
#include "run/task_devices.h"

namespace paceline {
namespace {

// Returns the bound of one step of a worker, from the bound of one batch and one update. The
// batches of towers share all threads, so they take as long as one after another. Accumulated steps
// share an update, and so do the steps of all workers in a synchronous round.
Bound bound_of_step(Bound bound, const Cluster& cluster) {
  bound.ops *= double(cluster.towers);
  bound.rules /= double(cluster.train.accumulate);
  const StrategyKind& kind = strategy_kind(cluster);
  if (kind.exact() && kind.ps_closes_rounds(cluster.strategy)) {
    bound.rules /= double(cluster.workers());
  }
  return bound;
}

class MeasuredMachine : public SessionObserver {
 public:
  // The bound is measured after training, when the measurement disturbs nothing.
  void ended(RunningSession& session) override {
    try {
      add_bound(session);
      keep_pace(session);
    } catch (const std::exception&) {
      // oneDNN may have no such product, or memory may be short; then the bound is not known.
    }
  }

 private:
  // Adds the bound to the report. Assumes that all workers of a job run on this machine, and that
  // all workers, and all towers, do equal work.
  static void add_bound(RunningSession& session) {
    const Cluster& cluster = session.made_of().cluster;
    const std::optional<double> made = session.report().tasks[0].steps_per_s;
    if (!made || is_computed_outside(session.plan(0))) return;
    const StepCost work = step_work(session.plan(0), session.variables());
    const RoofCache cache = this_roof_cache();
    const DType products = product_dtype(cluster.train.precision);
    const int threads = cluster.distributed() ? usable_cores() : session.threads();
    Roof roof = cache.roof(products, threads);
    const auto bound = [&] { return bound_of_step(bound_of(work, roof), cluster); };
    const auto allowed = [&] { return 1 / bound().total(); };
    // A speed above the bound means that other processes ran while the roof was measured.
    if (*made * cluster.workers() > allowed()) roof = cache.measure(products, threads);
    session.add_to_report("bound", "steps_per_s", allowed());
    session.add_to_report("bound", "rules_share", bound().rules / bound().total());
    session.add_to_report("bound", "gflops_per_s", roof.flops_per_s * 1e-9);
    session.add_to_report("bound", "gbytes_per_s", roof.bytes_per_s * 1e-9);
    session.add_to_report("bound", "rule_gbytes_per_s", roof.rule_bytes_per_s * 1e-9);
  }

  // Keeps the time of the kernels of a step that ran undisturbed. Predictions of later runs use it.
  static void keep_pace(RunningSession& session) {
    const Cluster& cluster = session.made_of().cluster;
    if (cluster.distributed() || cluster.towers > 1) return;
    const TaskReport& task = session.report().tasks[0];
    if (const std::optional<double> seconds = kernel_seconds(task)) {
      this_pace_cache().keep(pace_key(session.plan(0), cluster.train.precision),
                             {.threads = session.threads(),
                              .seconds = *seconds,
                              .others_share = task.use.pressure.queued.value_or(0)});
    }
  }
};

bool is_measured(const PlannedSession& session) {
  const Cluster& cluster = session.cluster;
  const bool here = !cluster.distributed() || is_on_one_machine(cluster);
  return here && cluster.is_chief() && session.trainings.size() == 1 &&
         device_kind(cluster.device.kind).meets_roof;
}

}  // namespace

MakeObserver measure_machine() {
  return [](const PlannedSession& session) {
    return is_measured(session) ? std::make_unique<MeasuredMachine>() : nullptr;
  };
}

}  // namespace paceline
