#include "launch/ps_task.h"

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/print_text.h"
#include "base/printed.h"
#include "launch/job_security.h"
#include "paceline/error.h"
#include "run/interrupt.h"
#include "run/program_run.h"
#include "run/report/report.h"
#include "run/report/run_folder.h"
#include "run/report/task_progress.h"
#include "run/task_devices.h"
#include "summary/event_writer.h"
#include "trace/task_timeline.h"

namespace paceline {
namespace {

/// Writes the event files of a ps for TensorBoard: its numbers since the last call
/// (docs/summaries.md). For one thread.
class PsSummaries {
 public:
  /// `folder` is DIR/summaries. `log`, which may be null, gets one line if the event files cannot
  /// be written.
  PsSummaries(const std::string& folder, const TaskId& task, const Log* log)
      : folder_(folder + "/" + task.str()), log_(log) {}
  void add(const PsSummary& now);

 private:
  void write(const PsSummary& now);

  const std::string folder_;
  const Log* const log_;
  std::optional<EventWriter> writer_;
  bool failed_ = false;
  PsSummary last_;
};

using Shares = std::vector<std::pair<const char*, double PsSummary::*>>;

const Shares kShares = {{"share/apply", &PsSummary::apply_share},
                        {"share/queue", &PsSummary::queue_share},
                        {"share/idle", &PsSummary::idle_share}};

// A share in a PsSummary covers all of the summary's `seconds`.
std::vector<SummaryValue> values_between(const PsSummary& last, const PsSummary& now) {
  std::vector<SummaryValue> values;
  const double seconds = now.seconds - last.seconds;
  if (seconds > 0) {
    values.push_back({"speed/steps_per_s", float(double(now.applied - last.applied) / seconds)});
    for (const auto& [tag, share] : kShares) {
      const double spent = now.*share * now.seconds - last.*share * last.seconds;
      values.push_back({tag, float(spent / seconds)});
    }
  }
  const double cores = last.use ? last.use->core_seconds : 0,
               used = last.use ? last.use->seconds : 0;
  if (now.use && now.use->seconds > used) {
    const double passed = now.use->seconds - used;
    values.push_back({"use/cores", float((now.use->core_seconds - cores) / passed)});
    values.push_back(
        {"use/sent_bytes_per_s", float(double(now.bytes_sent - last.bytes_sent) / passed)});
    values.push_back({"use/received_bytes_per_s",
                      float(double(now.bytes_received - last.bytes_received) / passed)});
  }
  return values;
}

void PsSummaries::add(const PsSummary& now) {
  if (failed_ || now.applied == last_.applied) return;
  try {
    write(now);
  } catch (const Error& error) {
    failed_ = true;
    if (log_ != nullptr) {
      log_->warning(fmt::format("{}; the job goes on without these summaries", error.what()));
    }
  }
}

void PsSummaries::write(const PsSummary& now) {
  // In a resumed job, earlier runs have made the steps before these.
  if (!writer_) writer_.emplace(folder_, now.global_step - now.applied);
  std::vector<SummaryValue> values = values_between(last_, now);
  if (!values.empty()) writer_->add({.step = now.global_step, .values = std::move(values)});
  last_ = now;
}

// The chief may take long, because it saves before it leaves.
constexpr Duration kWorkersMayTake = std::chrono::seconds(300);

PsOptions ps_options(const Cluster& cluster, const RunOptions& run, Timeline* timeline) {
  PsOptions options;
  options.spec = cluster.spec;
  options.task = cluster.task;
  options.cluster_id = cluster.cluster_id;
  options.bind = cluster.links.bind;
  options.this_machine = is_on_one_machine(cluster);
  options.link = cluster.links.kind;
  options.security = cluster.links.security;
  options.join_timeout = std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(cluster.links.join_timeout_s));
  options.reconnect_timeout = std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(cluster.links.reconnect_timeout_s));
  options.threads = cluster.threads;
  options.last_step = run.steps.value_or(0);
  options.timeline = timeline;
  options.progress_every = run.summary_every;
  const ProgramRun& told = program_run_of(run);
  if (told.interrupt != nullptr) {
    options.stop_fd = told.interrupt->fd();
    options.stop_within = kWorkersMayTake;
    options.stopping = [&told] {
      told.interrupt->take_time();
      if (told.log != nullptr) told.log->info("told to stop; waiting until its workers have left");
    };
  }
  if (cluster.show_placement) {
    options.placed = [](const std::string& text) { print_text(stdout, text); };
  }
  if (const Log* const log = told.log) {
    options.say = [log](const std::string& text) { log->info(text); };
    options.warn = [log](const std::string& text) { log->warning(text); };
    options.listening = [log](const std::string& at) { log->info("listening on " + at); };
  }
  return options;
}

TaskReport task_report(const PsSummary& summary, const Cluster& cluster) {
  TaskReport task;
  task.task = cluster.task.str();
  task.steps = summary.applied;
  task.seconds = summary.seconds;
  task.share = {
      {"apply", summary.apply_share}, {"queue", summary.queue_share}, {"idle", summary.idle_share}};
  if (const KeptOnPs& kept = summary.kept; !kept.largest.empty()) {
    task.kept = {.bytes = double(kept.bytes),
                 .largest = kept.largest,
                 .largest_bytes = double(kept.largest_bytes)};
  }
  task.use = task_use(summary.use, summary.bytes_sent, summary.bytes_received);
  return task;
}

Report report_of(const PsSummary& summary, const Cluster& cluster, const std::string& model) {
  Report report;
  report.model = model;
  report.strategy = cluster.strategy.name;
  report.tls = tls_in_words(cluster.links.security);
  report.tasks = {task_report(summary, cluster)};
  report.error = summary.error;
  return report;
}

}  // namespace

std::string ps_progress(const PsSummary& summary, const Cluster& cluster, const Log* log) {
  TaskProgress now;
  now.at =
      std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  now.report = report_of(summary, cluster, "");
  if (log != nullptr) now.lines = log->remembered();
  return now.to_json();
}

void run_ps(const Cluster& cluster, const RunOptions& run, const std::string& model,
            const AfterReads& after_reads) {
  PsSummary summary;
  std::optional<PsSummaries> summaries;
  if (!run.out.empty() && !run.summary_every.never()) {
    summaries.emplace(run.out + "/summaries", cluster.task, program_run_of(run).log);
  }
  std::optional<Timeline> timeline;
  if (!run.timeline.empty()) timeline.emplace(run.timeline_first, run.timeline_end);
  PsOptions options = ps_options(cluster, run, timeline ? &*timeline : nullptr);
  options.after_reads = after_reads;
  options.progress_text = [&](const PsSummary& now) {
    return ps_progress(now, cluster, program_run_of(run).log);
  };
  if (summaries) options.progress = [&](const PsSummary& now) { summaries->add(now); };
  const auto leave_report = [&] {
    if (summaries) summaries->add(summary);
    const Report report = report_of(summary, cluster, model);
    write_reports(cluster, run, report);
    if (timeline && !is_left_as_it_is(run, report, run.timeline)) {
      write_timeline(run.timeline, *timeline, cluster.task.str());
    }
  };
  try {
    serve(options, &summary);
  } catch (const Error&) {
    leave_report();
    throw;
  }
  leave_report();
  if (run.quiet || !summary.use) return;
  const TaskReport task = task_report(summary, cluster);
  print_text(stdout,
             fmt::format("{} applied, used {}\n", counted(task.steps, "step"), task.use.text()));
}

}  // namespace paceline
