#include "bench/step_rates.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/cores.h"
#include "bench/link_rates.h"
#include "bench/roof.h"
#include "bench/step_work.h"
#include "bench/train_run.h"
#include "kernels/cpu/instruction_set.h"
#include "paceline/error.h"
#include "predict/bound.h"
#include "predict/worker_step_cost.h"

namespace paceline::bench {
namespace {

constexpr double kMillisPerSecond = 1e3, kMicrosPerSecond = 1e6;
const char* const kSeconds = "5";

int workers_of(const Cluster& cluster) {
  return cluster.process == Cluster::Process::kLauncher ? cluster.launch.workers
                                                        : cluster.workers();
}

// Returns the threads that compute: those of one process, or all cores, which the tasks of a
// cluster share.
int threads_of(const Cluster& cluster) {
  return !cluster.distributed() && cluster.threads > 0 ? cluster.threads : usable_cores();
}

// Returns the link that moves bytes between tasks of one host; empty if the tasks share memory.
std::string moving_link(const Cluster& cluster) {
  return !cluster.distributed() || shares_memory(cluster) ? "" : "tcp";
}

std::vector<std::string> train_arguments(const StepCase& one, bool trains) {
  std::vector<std::string> arguments = one.arguments;
  arguments.insert(arguments.begin(), "train");
  const bool ends = one.run.steps || one.run.seconds || one.settings.all_given().contains("epochs");
  if (trains && !ends) arguments.insert(arguments.end(), {"--seconds", kSeconds});
  return arguments;
}

/// The runs of one case, each with the roofs that were measured before it and after it.
class StepRuns {
 public:
  StepRuns(Recorder& recorder, const StepCase& one)
      : recorder_(recorder), case_(one), steps_(one.model->step_graphs(one.settings)) {
    for (const models::StepGraph& step : steps_) {
      work_.push_back(paceline::step_work(request_of(step), one.cluster, one.run));
    }
    const std::string link = moving_link(one.cluster);
    const double rate = link.empty() ? 0 : link_rate(link, recorder.repeats());
    // Makes the meter anew each time, so that its arrays do not exist during a run.
    const auto roof = [&] {
      return RoofMeter(product_dtype(one.cluster.train.precision), threads_of(one.cluster), rate)
          .measure();
    };
    const auto arguments = train_arguments(one, trains());
    for (int i = 0; i < recorder.repeats(); ++i) {
      recorder.progress(fmt::format("{}, {} of {}", one.name(), i + 1, recorder.repeats()));
      roofs_.push_back(roof());
      runs_.push_back(run_train(arguments));
    }
    roofs_.push_back(roof());
  }

  void record() const {
    if (trains()) {
      record_training();
    } else {
      for (std::size_t i = 0; i < steps_.size(); ++i) record_section(i);
    }
    record_roof();
    if (!case_.cluster.distributed() && trains()) record_memory();
  }

 private:
  bool trains() const { return steps_.front().training.has_value(); }

  std::string detail(const std::string& what) const {
    return fmt::format("{}: {}", case_.name(), what);
  }

  // Returns the mean of two bounds: by the roof before the run, and by the roof after it.
  Bound bound(std::size_t step, std::size_t run) const {
    const Bound before = bound_of(work_[step], roofs_[run]);
    const Bound after = bound_of(work_[step], roofs_[run + 1]);
    return {(before.ops + after.ops) / 2, (before.rules + after.rules) / 2,
            (before.link + after.link) / 2};
  }

  template <typename F>
  std::vector<double> of_runs(const F& value) const {
    std::vector<double> values;
    for (std::size_t i = 0; i < runs_.size(); ++i) values.push_back(value(i));
    return values;
  }

  void record_training() const {
    recorder_.add(figure_beside(case_.name(), "steps/s",
                                of_runs([&](std::size_t i) { return total_steps_per_s(runs_[i]); }),
                                "bound",
                                of_runs([&](std::size_t i) { return 1 / bound(0, i).total(); })));
    recorder_.add(figure_of(detail(runs_[0].tasks[0].unit), "/s",
                            of_runs([&](std::size_t i) { return examples_per_s(i); })));
    record_bound(0);
  }

  double examples_per_s(std::size_t run) const {
    double total = 0;
    for (const TaskReport& task : runs_[run].tasks) total += task.examples_per_s.value_or(0);
    return total;
  }

  void record_bound(std::size_t step) const {
    const auto part = [&](const char* name, double Bound::*member) {
      recorder_.add(figure_of(
          detail(fmt::format("bound, {}", name)), "ms",
          of_runs([&](std::size_t i) { return bound(step, i).*member * kMillisPerSecond; })));
    };
    part("ops", &Bound::ops);
    part("rules", &Bound::rules);
    part("link", &Bound::link);
  }

  void record_section(std::size_t step) const {
    const std::string& section = steps_[step].section;
    for (const char* key : {"local_us", "remote_us", "added_us"}) {
      if (!runs_[0].value(section, key)) continue;
      const std::string name = fmt::format("{}, {}", section, key);
      const auto values = of_runs([&](std::size_t i) { return value_of(runs_[i], section, key); });
      if (key == std::string("remote_us")) {
        recorder_.add(figure_beside(name, "us", values, "bound", of_runs([&](std::size_t i) {
                                      return bound(step, i).total() * kMicrosPerSecond;
                                    })));
      } else {
        recorder_.add(figure_of(name, "us", values));
      }
    }
  }

  void record_roof() const {
    std::vector<double> products, memory, rules;
    for (const Roof& roof : roofs_) {
      products.push_back(roof.flops_per_s / 1e9);
      memory.push_back(roof.bytes_per_s / 1e9);
      rules.push_back(roof.rule_bytes_per_s / 1e9);
    }
    recorder_.add(figure_of(detail(fmt::format("roof, {}", paceline::name_of(product_dtype(
                                                               case_.cluster.train.precision)))),
                            "GFLOP/s", products));
    recorder_.add(figure_of(detail("roof, memory update"), "GB/s", memory));
    recorder_.add(figure_of(detail("roof, rules"), "GB/s", rules));
    if (roofs_[0].link_bytes_per_s > 0) {
      recorder_.add(figure_of(detail("roof, link"), "GB/s", {roofs_[0].link_bytes_per_s / 1e9}));
    }
  }

  void record_memory() const {
    constexpr double kMega = 1e6;
    const double needed = work_[0].memory() / kMega;
    recorder_.add(figure_beside(
        detail("peak memory"), "MB",
        of_runs([&](std::size_t i) { return peak_memory(runs_[i]) / kMega; }),
        "variables + slots + gradients + activations", std::vector<double>(runs_.size(), needed)));
  }

  Recorder& recorder_;
  const StepCase& case_;
  std::vector<models::StepGraph> steps_;
  std::vector<StepCost> work_;
  std::vector<Roof> roofs_;  // one more roof than there are runs
  std::vector<Report> runs_;
};

}  // namespace

std::string StepCase::name() const {
  if (!cluster.distributed()) return std::string(model->name()) + ", one process";
  const int workers = workers_of(cluster);
  return fmt::format("{}, {} ps + {} worker{}", model->name(), cluster.launch.ps, workers,
                     workers == 1 ? "" : "s");
}

void check(const StepCase& one) {
  if (one.cluster.process == Cluster::Process::kTask) {
    throw Error(ErrorCode::kUsage, "bench step starts all tasks itself: give --ps and --workers");
  }
  if (one.cluster.device.kind != "cpu") {
    throw Error(ErrorCode::kUsage, fmt::format("--device {}: bench step knows no bound for it",
                                               one.cluster.device.kind));
  }
}

void measure_step(Recorder& recorder, const StepCase& one) { StepRuns(recorder, one).record(); }

}  // namespace paceline::bench
