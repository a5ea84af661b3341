#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/grouped_digits.h"
#include "base/printed.h"
#include "cli/flags/command_line.h"
#include "explain/run_facts.h"
#include "paceline/error.h"
#include "run/report/report.h"
#include "run/report/staleness_in_words.h"
#include "tools/say.h"
#include "tools/subcommand.h"
#include "trace/step_account.h"

namespace paceline {
namespace {

// One of the runs of a model that are compared.

struct ComparedRun {
  std::string file;  // distinguishes runs that have the same tasks
  Report report;
};

struct Comparison {
  std::string title;  // "ptb small, generated text"
  // At least one; the others are compared with the first.
  std::vector<ComparedRun> runs;
  /// Reports of two more runs with a simulated device for each worker: of one process, and of the
  /// cluster.
  std::optional<Report> simulated_alone, simulated_cluster;
  // The result of others, printed beside the line of the simulated runs; may be empty.
  std::string reported;
};

/// Returns the table that `paceline compare` prints, ending in a newline. Throws
/// kFailedPrecondition if the runs are of different models, or if one failed or was too short to be
/// timed.
std::string comparison_text(const Comparison& comparison);

const std::array<std::string_view, kActivityCount> kActivities = [] {
  std::array<std::string_view, kActivityCount> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = name_of(Activity(i));
  return names;
}();

struct Run {
  std::string name;
  std::string unit;
  double examples_per_s = 0;
  double steps_per_s = 0;
  std::array<double, kActivities.size()> share{};  // mean over the workers
  std::string progress;                            // of the loss, or of the perplexity
};

std::string cluster_name(const Report& report) {
  const auto workers = std::ranges::count_if(report.tasks, &TaskReport::is_worker);
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
  Run run{cluster_name(report), "", 0, 0, {}, ""};
  if (!report.error.empty()) {
    throw Error(ErrorCode::kFailedPrecondition, run.name + " failed: " + report.error);
  }
  const auto workers = std::ranges::count_if(report.tasks, &TaskReport::is_worker);
  for (const TaskReport& task : report.tasks) {
    if (!task.is_worker()) continue;
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

[[noreturn]] void refuse(const std::string& why) {
  throw Error(ErrorCode::kFailedPrecondition, why);
}

void check_pair(const Report& alone, const Report& cluster) {
  if (alone.model != cluster.model) {
    refuse(fmt::format("one run is of {}, the other of {}", alone.model, cluster.model));
  }
  if (alone.tasks.size() != 1)
    refuse(fmt::format("the first is a run of {}, not of one process", cluster_name(alone)));
  if (cluster.tasks.size() == 1) refuse("the second is a run of one process, too");
}

struct Progress {
  std::optional<double> first, last;
};

Progress perplexity_of(const Report& report) {
  return {report.value("perplexity", "first"), report.value("perplexity", "last")};
}

// True if every run has a perplexity, so that all can be compared by it.
bool have_perplexity(const std::vector<ComparedRun>& runs) {
  return std::ranges::all_of(runs, [](const ComparedRun& run) {
    const Progress of = perplexity_of(run.report);
    return of.first && of.last;
  });
}

std::string progress_text(const Report& report, bool perplexity) {
  if (perplexity) {
    const Progress of = perplexity_of(report);
    return fmt::format("{:.0f} -> {:.0f}", *of.first, *of.last);
  }
  if (!report.first_loss || !report.last_loss) return "-";
  return fmt::format("{:.4g} -> {:.4g}", *report.first_loss, *report.last_loss);
}

std::int64_t worker_steps(const Report& report) {
  std::int64_t steps = 0;
  for (const TaskReport& task : report.tasks) steps += task.is_worker() ? task.steps : 0;
  return steps;
}

std::string cores_text(const Report& report) {
  if (!report.cores) return "";
  return fmt::format("{} core{}, ", *report.cores, *report.cores == 1 ? "" : "s");
}

// "150 steps", "150 to 300 steps".
std::string steps_text(const std::vector<ComparedRun>& runs) {
  std::int64_t least = worker_steps(runs.front().report), most = least;
  for (const ComparedRun& run : runs) {
    least = std::min(least, worker_steps(run.report));
    most = std::max(most, worker_steps(run.report));
  }
  // Workers of a cluster end a few steps apart.
  if (double(most) <= 1.1 * double(least)) {
    return fmt::format("{} steps", worker_steps(runs.front().report));
  }
  return fmt::format("{} to {} steps", least, most);
}

std::string row(const Run& run, double of_first, std::size_t width) {
  std::string text = fmt::format("{:<{}} {:>8} {:>9.2f} ", run.name, width,
                                 grouped_digits(std::llround(run.examples_per_s)), of_first);
  for (std::size_t i = 0; i < kActivities.size(); ++i) {
    text +=
        fmt::format(" {:>{}}", fmt::format("{:.0f}%", 100 * run.share[i]), kActivities[i].size());
  }
  return text + "  " + run.progress + "\n";
}

// Says how much of its speed the cluster lost, and in which activity most of that. The machine
// spends 1 / rate on an example, no matter how many tasks share it, so an activity's part of that
// time can be compared between a run of one task and a run of many.
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

// Returns the speed-up to expect. More tasks on the same cores do no more work.
std::string expectation(const std::vector<ComparedRun>& runs) {
  const std::optional<int>& first = runs.front().report.cores;
  for (const ComparedRun& run : runs) {
    if (!first || !run.report.cores) return "On the same cores about 1.00 is what to expect.";
    if (*run.report.cores != *first) {
      return fmt::format("The runs had {} and {} cores.", *first, *run.report.cores);
    }
  }
  return fmt::format("The same {} core{} all the work: about 1.00 is what to expect.", *first,
                     *first == 1 ? " does" : "s do");
}

std::string losses_of_speed(const std::vector<Run>& runs) {
  if (runs.size() == 2) return " " + loss_text(runs[0], runs[1]) + "\n";
  std::string text = "\n";
  for (std::size_t i = 1; i < runs.size(); ++i) {
    text += fmt::format("{}: {}\n", runs[i].name, loss_text(runs[0], runs[i]));
  }
  return text;
}

// True if one run made so many more steps than another that their ends cannot be compared. Workers
// of a cluster end a few steps apart.
bool made_other_steps(const Report& a, const Report& b) {
  constexpr double kApart = 1.1;
  const auto of_a = double(worker_steps(a)), of_b = double(worker_steps(b));
  return std::max(of_a, of_b) > kApart * std::min(of_a, of_b);
}

// Returns a line for each run that learned nothing or ended with a worse loss, no matter how fast
// it was. The losses are means over windows of steps, so that no single batch decides.
std::string worse_ends(const std::vector<ComparedRun>& compared, const std::vector<Run>& runs) {
  constexpr double kWorse = 1.1;
  const Report& first = compared.front().report;
  std::string text;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Report& report = compared[i].report;
    if (!report.loss_begin || !report.loss_end) continue;
    const LossWindow &begin = *report.loss_begin, &end = *report.loss_end;
    const bool with_first = first.loss_end && !made_other_steps(first, report);
    if (is_above(end, begin)) {
      text += fmt::format("{} learned nothing: its loss went from {:.4g} to {:.4g}.", runs[i].name,
                          begin.mean, printed(end.mean));
    } else if (with_first && end.mean > kWorse * first.loss_end->mean &&
               is_above(end, *first.loss_end)) {
      text += fmt::format("{} ended at a loss of {:.4g}, {} at {:.4g}.", runs[i].name, end.mean,
                          runs[0].name, first.loss_end->mean);
    } else {
      continue;
    }
    const std::string why = high_staleness(report);
    text += why.empty() ? "\n" : " " + why + "\n";
  }
  return text;
}

// Returns a line for each reason why a run cannot be compared with the first.
std::string not_comparable(const std::vector<ComparedRun>& compared, const std::vector<Run>& runs) {
  constexpr double kLoad = 0.1, kLeastLoad = 0.2;  // of the cores; cores
  const Report& first = compared.front().report;
  std::string text;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Report& report = compared[i].report;
    const RunFacts facts(report);
    const double others = facts.cores_of_others();
    if (others > std::max(kLeastLoad, kLoad * facts.cores())) {
      text += fmt::format(
          "Not comparable: {} ran under load. Other processes kept {:.1f} of {} cores busy.\n",
          runs[i].name, others, facts.cores());
    }
    for (const TaskReport& task : report.tasks) {
      const double stood = task.use.pressure.stops.seconds;
      if (stood <= 0) continue;
      text += fmt::format("Not comparable: {} of {} stood still for {:.1f} s.\n", task.task,
                          runs[i].name, stood);
    }
    if (made_other_steps(first, report)) {
      text += fmt::format(
          "Not comparable: {} made {} and {} {}, so that their ends are of other moments.\n",
          runs[0].name, counted(worker_steps(first), "step"), runs[i].name,
          grouped_digits(worker_steps(report)));
    }
  }
  return text;
}

// Returns the runs. If several have the same tasks, their names include their files.
std::vector<Run> runs_of(const std::vector<ComparedRun>& compared) {
  const bool perplexity = have_perplexity(compared);
  std::vector<Run> runs;
  for (const ComparedRun& each : compared) {
    const Report& report = each.report;
    if (report.model != compared.front().report.model) {
      refuse(fmt::format("{} is a run of {}, {} of {}", compared.front().file,
                         compared.front().report.model, each.file, report.model));
    }
    runs.push_back(run_of(report));
    runs.back().progress = progress_text(report, perplexity);
    const auto same_tasks = [&](const ComparedRun& other) {
      return cluster_name(other.report) == cluster_name(report);
    };
    if (std::ranges::count_if(compared, same_tasks) > 1) {
      runs.back().name += fmt::format(" ({})", each.file);
    }
  }
  return runs;
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

std::string comparison_text(const Comparison& comparison) {
  constexpr std::size_t kNameWidth = 18;
  const std::vector<Run> runs = runs_of(comparison.runs);
  std::size_t width = kNameWidth;
  for (const Run& run : runs) width = std::max(width, run.name.size());
  std::string text =
      fmt::format("{}, {}{}\n", comparison.title, cores_text(comparison.runs.front().report),
                  steps_text(comparison.runs));
  const bool with_alone = comparison.runs.front().report.tasks.size() == 1;
  text += fmt::format("{:<{}} {:>8} {:>9}  {}  {}\n", "", width, runs[0].unit + "/s",
                      with_alone ? "of alone" : "of first", fmt::join(kActivities, " "),
                      have_perplexity(comparison.runs) ? "perplexity" : "loss");
  for (const Run& run : runs) {
    text += row(run, run.examples_per_s / runs[0].examples_per_s, width);
  }
  if (runs.size() > 1) {
    text += expectation(comparison.runs) + losses_of_speed(runs) +
            not_comparable(comparison.runs, runs);
  }
  text += worse_ends(comparison.runs, runs);
  if (comparison.simulated_alone && comparison.simulated_cluster)
    text += simulated_line(comparison);
  return text;
}

CommandLine compare_flags() {
  return {
      "paceline compare",
      "Compares the reports of runs of one model: how fast each was, how its loss or perplexity "
      "fell, and where its time went. Each run is compared with the first.",
      R"(Examples:
  paceline train ptb --data text --steps 300 --report alone.json
  paceline train ptb --data text --steps 300 --ps 1 --workers 2 --report cluster.json
  paceline compare alone.json cluster.json
  paceline compare out-1 out-2 out-3)",
      {{"REPORT", "PATH…",
        "The reports of the runs, or their folders (--out); the first is what the others are "
        "compared with",
        "Reports", true},
       {"--simulated", "FILE FILE", "Two more reports, with a simulated device for each worker",
        "Flags", false, 2},
       {"--title", "TEXT", "The name of the job in the output (default: the model)", "Flags"},
       {"--reported", "TEXT", "A result of others to print beside the simulated line", "Flags"}}};
}

}  // namespace

std::vector<CommandLine> compare_lines() { return {compare_flags()}; }

int compare_command(const Arguments& arguments) {
  const std::optional<FlagValues> values = parse(compare_flags(), arguments);
  if (!values) return 0;
  Comparison comparison;
  for (const std::string& file : values->all("REPORT")) {
    comparison.runs.push_back({file, read_report(file)});
  }
  comparison.title =
      values->given("--title") ? values->text("--title") : comparison.runs.front().report.model;
  comparison.reported = values->text("--reported");
  if (const std::vector<std::string> simulated = values->all("--simulated"); !simulated.empty()) {
    if (simulated.size() != 2) throw Error(ErrorCode::kUsage, "--simulated needs two reports");
    comparison.simulated_alone = read_report(simulated[0]);
    comparison.simulated_cluster = read_report(simulated[1]);
  }
  say(comparison_text(comparison));
  return 0;
}

}  // namespace paceline
