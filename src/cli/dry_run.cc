#include "cli/dry_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <numeric>
#include <set>
#include <string>
#include <unordered_map>

#include "base/cores.h"
#include "base/grouped_digits.h"
#include "base/print_text.h"
#include "base/row_count.h"
#include "launch/launcher.h"
#include "params/hybrid/hybrid_store.h"
#include "params/protocol/placement.h"
#include "params/strategy/strategies.h"
#include "params/variable_arrays.h"
#include "predict/worker_step_cost.h"
#include "run/task_devices.h"
#include "train/planned_only.h"

namespace paceline {
namespace {

using Specs = std::vector<VariableSpec>;

// "75.5 MB", "14.5 GFLOP"
std::string amount(double number, std::string_view unit) {
  constexpr std::string_view kPrefixes[] = {"", "k", "M", "G", "T", "P"};
  std::size_t prefix = 0;
  for (; number >= 999.5 && prefix + 1 < std::size(kPrefixes); ++prefix) number /= 1000;
  return fmt::format("{:.{}f} {}{}", number, prefix == 0 || number >= 99.95 ? 0 : 1,
                     kPrefixes[prefix], unit);
}

std::string bytes(double number) { return amount(number, "B"); }

std::string threads_text(const Cluster& cluster) {
  const int threads = cluster.threads > 0 ? cluster.threads : usable_cores();
  return fmt::format("{} thread{}", threads, threads == 1 ? "" : "s");
}

// The ports of tasks on this machine are not known yet: they are chosen when tasks start.
std::string local_cluster_text(Cluster cluster) {
  const std::string address = "127.0.0.1:free";
  if (!cluster.existing_servers) {
    cluster.spec.ps.assign(std::size_t(cluster.launch.ps), address);
  }
  cluster.spec.workers.assign(std::size_t(cluster.launch.workers), address);
  const auto tasks = std::size_t(cluster.launch.ps) + std::size_t(cluster.launch.workers);
  return announcement(cluster, places_here(cluster, std::vector(tasks, address)));
}

std::string task_lines(const Cluster& cluster, TaskId::Role role) {
  const bool ps = role == TaskId::Role::kPs;
  std::string text;
  int index = 0;
  for (const std::string& address : ps ? cluster.spec.ps : cluster.spec.workers) {
    const TaskId task{role, index++};
    const bool here = cluster.process == Cluster::Process::kTask && task == cluster.task;
    const std::string device =
        here && !ps ? ", " + devices_of(cluster, task) + ", " + threads_text(cluster) : "";
    text += fmt::format("  {:<10}{}{}{}\n", task.str(), address, here ? "  this task" : "", device);
  }
  return text;
}

std::string cluster_text(const Cluster& cluster) {
  if (cluster.process == Cluster::Process::kAlone) {
    return fmt::format("Alone: one process, {}, {}\n", devices_of(cluster, cluster.task),
                       threads_text(cluster));
  }
  if (cluster.process == Cluster::Process::kLauncher) return local_cluster_text(cluster);
  return fmt::format("{} ps + {} worker{}, each a process of its own\n", cluster.spec.ps.size(),
                     cluster.spec.workers.size(), cluster.spec.workers.size() == 1 ? "" : "s") +
         task_lines(cluster, TaskId::Role::kPs) + task_lines(cluster, TaskId::Role::kWorker);
}

int ps_count(const Cluster& cluster) {
  const bool launched_here =
      cluster.process == Cluster::Process::kLauncher && !cluster.existing_servers;
  return launched_here ? cluster.launch.ps : int(cluster.spec.ps.size());
}

std::string mean_text(const Cluster& cluster) {
  std::string of;
  if (cluster.train.accumulate > 1) of = fmt::format("{} steps", cluster.train.accumulate);
  if (cluster.towers > 1)
    of += fmt::format("{}{} towers", of.empty() ? "" : " of ", cluster.towers);
  return of.empty() ? "" : ", a contribution is the mean of " + of;
}

double value_bytes(const VariableSpec& spec) {
  return double(row_count(spec.shape)) * double(row_bytes(spec));
}

/// The job's variables, with the work of each kind of step.
class DryJob {
 public:
  DryJob(std::span<const DryStep> steps, const Cluster& cluster, const RunOptions& run)
      : cluster_(cluster) {
    std::unordered_map<std::string, std::size_t> ids;
    for (const DryStep& step : steps) {
      work_.push_back(step_work(step.request, cluster, run));
      sections_.push_back(step.section);
      for (const VariableSpec& spec : work_.back().specs) {
        const auto [known, is_new] = ids.emplace(spec.name, specs_.size());
        if (is_new) {
          specs_.push_back(spec);
        } else if (spec.trained) {
          specs_[known->second] = spec;  // The step seen before only reads it.
        }
      }
    }
    const StrategyKind& kind = strategy_kind(cluster);
    if (kind.why_not_variables != nullptr) {
      const std::string why_not = kind.why_not_variables(specs_);
      if (!why_not.empty()) {
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("--strategy {} {}", kind.name, why_not));
      }
    }
    splits_ = kind.splits_variables();
    on_ps_ = splits_ ? part_of(specs_, true) : specs_;
    if (ps_count(cluster) > 0) pieces_ = place_variables(on_ps_, ps_count(cluster));
  }

  std::string parameters() const {
    std::int64_t elements = 0;
    double values = 0, slots = 0;
    std::set<std::string_view> rules;
    for (const VariableSpec& spec : specs_) {
      elements += spec.shape.elements();
      values += value_bytes(spec);
      slots += slot_bytes(spec, double(row_count(spec.shape)));
      if (spec.trained && work_.front().link_bytes_out > 0) rules.insert(spec.rule.name());
    }
    return fmt::format("{} parameters in {} variable{}: {}, slots {}{}\n", grouped_digits(elements),
                       specs_.size(), specs_.size() == 1 ? "" : "s", bytes(values), bytes(slots),
                       rules.empty() ? "" : fmt::format(" ({})", fmt::join(rules, ", ")));
  }

  std::string placement() const {
    if (!cluster_.distributed()) return "All variables are in this process.\n";
    if (ps_count(cluster_) == 0) return "Every worker keeps all variables and slots.\n";
    std::string text;
    for (int ps = 0; ps < ps_count(cluster_); ++ps) {
      double values = 0, slots = 0;
      for (const Piece& piece : pieces_) {
        if (piece.ps != ps) continue;
        const VariableSpec& spec = on_ps_[std::size_t(piece.variable)];
        values += double(piece_bytes(spec, piece));
        slots += slot_bytes(spec, double(piece.rows));
      }
      text += fmt::format("ps:{} keeps {}, slots {}\n", ps, bytes(values), bytes(slots));
    }
    return text + placement_text(on_ps_, pieces_) + dense_text();
  }

  /// Describes the variables that the workers reduce among themselves, beside ps tasks.
  std::string dense_text() const {
    if (!splits_) return "";
    double values = 0, slots = 0;
    std::vector<std::string> names;
    for (const VariableSpec& spec : part_of(specs_, false)) {
      values += value_bytes(spec);
      slots += slot_bytes(spec, double(row_count(spec.shape)));
      names.push_back(spec.name);
    }
    return fmt::format("each worker keeps {}, slots {}, by all-reduce: {}\n", bytes(values),
                       bytes(slots), fmt::join(names, ", "));
  }

  std::string steps() const {
    std::string text;
    for (std::size_t i = 0; i < work_.size(); ++i) {
      const std::string& section = sections_[i];
      text += fmt::format("A step of one {}{}:\n", cluster_.towers > 1 ? "tower" : "worker",
                          section.empty() ? "" : ", " + section);
      text += work_text(work_[i]);
      if (ps_count(cluster_) > 0) {
        text += link_text(work_[i]);
      } else if (cluster_.distributed()) {
        text += reduction_text(work_[i].link_bytes_out);
      }
    }
    return text;
  }

 private:
  static std::string work_text(const StepCost& work) {
    double op_bytes = 0;
    for (const Cost& cost : work.ops) op_bytes += cost.bytes;
    std::string text =
        fmt::format("  {} in {} op{}, which read and write {}\n", amount(work.flops(), "FLOP"),
                    work.ops.size(), work.ops.size() == 1 ? "" : "s", bytes(op_bytes));
    if (work.reorders > 0) {
      text += fmt::format("  reorders of images between two layouts: {}\n", work.reorders);
    }
    if (work.rule_bytes > 0) {
      text += fmt::format("  its update reads and writes {}\n", bytes(work.rule_bytes));
    }
    return text + fmt::format("  memory: activations {}, gradients {}\n", bytes(work.activations),
                              bytes(work.gradients));
  }

  // In a ring, each worker sends (workers − 1) ÷ workers of the sums twice: as partial sums, and as
  // whole ones.
  std::string reduction_text(double contribution) const {
    const auto workers = double(std::max<std::size_t>(cluster_.spec.workers.empty()
                                                          ? std::size_t(cluster_.launch.workers)
                                                          : cluster_.spec.workers.size(),
                                                      1));
    return fmt::format("  on links: {} of sums are sent and received{}\n",
                       bytes(2 * contribution * (workers - 1) / workers),
                       shares_memory(cluster_)
                           ? "; on one host they are read where they lie, in shared memory"
                           : "");
  }

  // Assumes that a step reads rows from all parts of a split sparse variable evenly.
  std::string link_text(const StepCost& work) const {
    std::vector<double> in(std::size_t(ps_count(cluster_))), out(in);
    for (const Piece& piece : pieces_) {
      const VariableSpec& spec = on_ps_[std::size_t(piece.variable)];
      const auto own = std::ranges::find(work.specs, spec.name, &VariableSpec::name);
      if (own == work.specs.end()) continue;
      const auto v = std::size_t(own - work.specs.begin());
      const double part = double(piece.rows) / double(row_count(spec.shape));
      in[std::size_t(piece.ps)] += part * work.bytes_in[v];
      out[std::size_t(piece.ps)] += part * work.bytes_out[v];
    }
    const double all_in = splits_ ? std::accumulate(in.begin(), in.end(), 0.0) : work.link_bytes_in;
    const double all_out =
        splits_ ? std::accumulate(out.begin(), out.end(), 0.0) : work.link_bytes_out;
    std::string text = fmt::format(
        "  on links: {} of values are received, {} of contributions are sent{}\n", bytes(all_in),
        bytes(all_out),
        shares_memory(cluster_) ? "; on one host most of it is read where it lies, in shared memory"
                                : "");
    for (std::size_t ps = 0; ps < in.size(); ++ps) {
      text += fmt::format("    ps:{}: {} and {}\n", ps, bytes(in[ps]), bytes(out[ps]));
    }
    if (splits_) text += reduction_text(work.link_bytes_out - all_out);
    return text;
  }

  const Cluster& cluster_;
  std::vector<std::string> sections_;  // by step
  std::vector<StepCost> work_;         // by step
  bool splits_ = false;                // the strategy splits sparse variables from dense ones
  Specs specs_, on_ps_;
  std::vector<Piece> pieces_;  // of on_ps_
};

DryStep dry_step(const Graph& graph, const Training* training, const SessionOptions& options) {
  DryStep step;
  step.request.graph = &graph;
  step.request.training = training;
  for (const Value& value : options.watch) {
    if (&value.graph() == &graph) step.request.fetches.push_back(value);
  }
  return step;
}

std::vector<DryStep> dry_steps(const PlannedSession& session) {
  std::vector<DryStep> steps;
  for (const Training& training : session.trainings) {
    steps.push_back(dry_step(training.graph(), &training, session.options));
    if (session.trainings.size() > 1) {
      steps.back().section = fmt::format("training {}", steps.size() - 1);
    }
  }
  if (steps.empty()) steps.push_back(dry_step(*session.graphs[0], nullptr, session.options));
  return steps;
}

}  // namespace

std::string dry_run_text(std::string_view model, std::span<const DryStep> steps,
                         const Cluster& cluster, const RunOptions& run) {
  const DryJob job(steps, cluster, run);
  return fmt::format("Dry run of {}: nothing is started.\n", model) + cluster_text(cluster) +
         fmt::format("strategy {}, link {}{}\n", strategy_name(cluster),
                     cluster.distributed() ? cluster.links.kind : "none", mean_text(cluster)) +
         job.parameters() + job.placement() + job.steps();
}

MakeObserver show_dry_run() {
  return planned_only([](const PlannedSession& session) {
    print_text(stdout, dry_run_text(session.options.model, dry_steps(session), session.cluster,
                                    session.run));
    return true;
  });
}

}  // namespace paceline
