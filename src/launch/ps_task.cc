#include "launch/ps_task.h"

#include <fmt/format.h>

#include <optional>

#include "base/print_text.h"
#include "base/printed.h"
#include "launch/job_security.h"
#include "paceline/error.h"
#include "params/ps/serve.h"
#include "run/interrupt.h"
#include "run/log.h"
#include "run/program_run.h"
#include "run/report/ps_summaries.h"
#include "run/report/report.h"
#include "run/report/run_folder.h"
#include "run/report/task_progress.h"
#include "run/task_devices.h"
#include "trace/task_timeline.h"

namespace paceline {

namespace {

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
