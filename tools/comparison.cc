#include "tools/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

#include "base/grouped_digits.h"
#include "paceline/error.h"
#include "trace/step_account.h"

namespace paceline {
namespace {

const std::array<std::string_view, kActivityCount> kActivities = [] {
  std::array<std::string_view, kActivityCount> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = name_of(Activity(i));
  return names;
}();

bool is_worker(const TaskReport& task) { return task.task.starts_with("worker"); }

struct Run {
  std::string name;
  std::string unit;
  double examples_per_s = 0;
  double steps_per_s = 0;
  std::array<double, kActivities.size()> share{};  // mean over the workers
};

std::string cluster_name(const Report& report) {
  const auto workers = std::ranges::count_if(report.tasks, is_worker);
  const auto ps = std::ssize(report.tasks) - workers;
  if (ps == 0 && workers == 1) return "alone";
  return fmt::format("{} ps + {} worker{}", ps, workers, workers == 1 ? "" : "s");
}

double share_of(const TaskReport& task, std::string_view activity) {
  for (const auto& [name, fraction] : task.share) {
    if (name == activity) return fraction;
  }
  return 0;
}

Run run_of(const Report& report) {
  Run run{cluster_name(report), "", 0, 0, {}};
  if (!report.error.empty()) {
    throw Error(ErrorCode::kFailedPrecondition, run.name + " failed: " + report.error);
  }
  const auto workers = std::ranges::count_if(report.tasks, is_worker);
  for (const TaskReport& task : report.tasks) {
    if (!is_worker(task)) continue;
    if (!task.examples_per_s || !task.steps_per_s) {
      throw Error(ErrorCode::kFailedPrecondition,
                  fmt::format("{} of {} made no timed step: the first 10 are not timed", task.task,
                              run.name));
    }
    run.unit = task.unit;
    run.examples_per_s += *task.examples_per_s;
    run.steps_per_s += *task.steps_per_s;
    for (std::size_t i = 0; i < kActivities.size(); ++i) {
      run.share[i] += share_of(task, kActivities[i]) / double(workers);
    }
  }
  return run;
}

// Only two runs of the same job show what a cluster costs.
void check_pair(const Report& alone, const Report& cluster) {
  const auto refuse = [](const std::string& why) {
    throw Error(ErrorCode::kFailedPrecondition, why);
  };
  if (alone.model != cluster.model)
    refuse(fmt::format("ALONE is a run of {}, CLUSTER of {}", alone.model, cluster.model));
  if (alone.precision != cluster.precision)
    refuse(fmt::format("ALONE is a run in {}, CLUSTER in {}", alone.precision, cluster.precision));
  if (alone.tasks.size() != 1)
    refuse(fmt::format("ALONE is a run of {}, not of one process", cluster_name(alone)));
  if (cluster.tasks.size() == 1) refuse("CLUSTER is a run of one process, too");
}

std::string progress_text(const Report& report) {
  const auto first = report.value("perplexity", "first");
  const auto last = report.value("perplexity", "last");
  if (first && last) return fmt::format("perplexity {:.0f} -> {:.0f}", *first, *last);
  if (report.first_loss && report.last_loss) {
    return fmt::format("loss {:.4g} -> {:.4g}", *report.first_loss, *report.last_loss);
  }
  return "no loss was reported";
}

std::int64_t worker_steps(const Report& report) {
  std::int64_t steps = 0;
  for (const TaskReport& task : report.tasks) steps += is_worker(task) ? task.steps : 0;
  return steps;
}

std::string cores_text(const Report& report) {
  if (!report.cores) return "";
  return fmt::format("{} core{}, ", *report.cores, *report.cores == 1 ? "" : "s");
}

std::string row(const Run& run, double of_alone) {
  std::string text = fmt::format("{:<18} {:>8} {:>9.2f} ", run.name,
                                 grouped_digits(std::llround(run.examples_per_s)), of_alone);
  for (std::size_t i = 0; i < kActivities.size(); ++i) {
    text +=
        fmt::format(" {:>{}}", fmt::format("{:.0f}%", 100 * run.share[i]), kActivities[i].size());
  }
  return text + "\n";
}

// The machine spends 1 / rate on an example, whichever tasks share it; an activity's part of that
// is what can be compared between a run of one task and a run of many.
std::string loss_text(const Run& alone, const Run& cluster) {
  const double lost = 1 - cluster.examples_per_s / alone.examples_per_s;
  if (lost <= 0) return "Lost: nothing.";
  std::size_t most = 0;
  std::array<double, kActivities.size()> grown{};
  for (std::size_t i = 0; i < kActivities.size(); ++i) {
    grown[i] = cluster.share[i] / cluster.examples_per_s - alone.share[i] / alone.examples_per_s;
    if (grown[i] > grown[most]) most = i;
  }
  return fmt::format("Lost: {:.0f}%, most of it in {}.", 100 * lost, kActivities[most]);
}

// On one machine more tasks do not compute more than one task with all cores.
std::string expectation(const std::optional<int>& alone, const std::optional<int>& cluster) {
  if (!alone || !cluster) return "On the same cores about 1.00 is what to expect.";
  if (*alone != *cluster) return fmt::format("The runs had {} and {} cores.", *alone, *cluster);
  return fmt::format("The same {} core{} all the work: about 1.00 is what to expect.", *alone,
                     *alone == 1 ? " does" : "s do");
}

std::string simulated_line(const Comparison& comparison) {
  const Run alone = run_of(*comparison.simulated_alone);
  const Run cluster = run_of(*comparison.simulated_cluster);
  check_pair(*comparison.simulated_alone, *comparison.simulated_cluster);
  const std::string reported =
      comparison.reported.empty() ? "" : fmt::format("   (reported for {})", comparison.reported);
  return fmt::format(
      "With a device of its own per worker (simulated, {:.0f} ms a step): "
      "{:.1f} -> {:.1f} steps/s, {:.2f}x{}\n",
      1000 / alone.steps_per_s, alone.steps_per_s, cluster.steps_per_s,
      cluster.steps_per_s / alone.steps_per_s, reported);
}

}  // namespace

std::string comparison_text(const Comparison& comparison) {
  const Run alone = run_of(comparison.alone);
  const Run cluster = run_of(comparison.cluster);
  check_pair(comparison.alone, comparison.cluster);
  std::string text =
      fmt::format("{}, {}{} steps: {}\n", comparison.title, cores_text(comparison.alone),
                  worker_steps(comparison.alone), progress_text(comparison.alone));
  text += fmt::format("{:<18} {:>8} {:>9}  {}\n", "", alone.unit + "/s", "of alone",
                      fmt::join(kActivities, " "));
  text += row(alone, 1);
  text += row(cluster, cluster.examples_per_s / alone.examples_per_s);
  text += fmt::format("{} {}\n", expectation(comparison.alone.cores, comparison.cluster.cores),
                      loss_text(alone, cluster));
  if (comparison.simulated_alone && comparison.simulated_cluster)
    text += simulated_line(comparison);
  return text;
}

}  // namespace paceline
