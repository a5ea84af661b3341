#include <fmt/format.h>

#include <algorithm>

#include "base/printed.h"
#include "cli/flags/flag_checks.h"
#include "cli/flags/flags.h"
#include "cli/flags/job_flags.h"
#include "cli/flags/run_options_reader.h"
#include "cli/flags/security_reader.h"
#include "launch/job_security.h"
#include "launch/ps_task.h"
#include "net/link_kind.h"
#include "paceline/error.h"
#include "params/ps/serve.h"
#include "run/interrupt.h"
#include "run/log.h"
#include "tools/subcommand.h"

namespace paceline {
namespace {

constexpr std::int64_t kMostThreads = 1024;
// How long a server that was told to stop waits for its workers. The chief may take long, because
// it saves before it leaves.
constexpr Duration kWorkersMayTake = std::chrono::seconds(300);

/// Returns the flags of a training program that have the same meaning here.
std::vector<Flag> shared_flags() {
  std::vector<Flag> shared;
  for (const auto& flags : {cluster_flags(), run_flags()}) {
    for (const char* name : {"--link", "--join-timeout", "--reconnect-timeout", "--threads",
                             "--config", "--log-level", "--log-format", "--quiet"}) {
      const auto flag = std::ranges::find(flags, name, &Flag::name);
      if (flag == flags.end()) continue;
      shared.push_back(*flag);
      shared.back().group = "Flags";
      if (shared.back().name != "--link") continue;
      shared.back().placeholder = "auto|shm|tcp";
      shared.back().help =
          "The link to workers; auto takes shm on one host and tcp between hosts "
          "(default auto)";
    }
  }
  return shared;
}

CommandLine server_flags() {
  CommandLine line{
      "paceline server",
      "Runs a parameter server that serves one job after the other. When a job ends, its variables "
      "are forgotten, and the chief of the next job declares its own. Workers of another job wait, "
      "up to their --join-timeout, until no worker of the current job is connected.",
      R"(Examples:
  paceline server --bind 0.0.0.0:2222
  paceline train mlp --ps-hosts a:2222 --existing-servers --workers 2
      starts a job, on this host or on another one, as often as you like
  paceline train mlp --ps-hosts a:2222 --worker-hosts b:2222,c:2222 --existing-servers --task worker:0
      starts one worker of a job; each worker has a command of its own

Exit status: 0 if stopped between two jobs or after --jobs, 130 if stopped during a job, 1 if failed,
2 if used wrongly.)",
      {{"--bind", "HOST:PORT",
        "The address to listen at; 0.0.0.0:2222 is every address of this host", "Flags"},
       {"--jobs", "N", "End after so many jobs (default: never)", "Flags"}}};
  const std::vector<Flag> shared = shared_flags();
  for (const auto& flags : {shared, security_flags("Security of links")}) {
    line.flags.insert(line.flags.end(), flags.begin(), flags.end());
  }
  return line;
}

// Returns all links except those that only join threads of one process.
std::vector<std::string> links_of_processes() {
  std::vector<std::string> names;
  for (const LinkKind& kind : link_kinds()) {
    if (!kind.within_a_process) names.emplace_back(kind.name);
  }
  return names;
}

PsOptions server_options(const FlagValues& values, const Log& log) {
  PsOptions options;
  options.any_job = true;
  options.task = {TaskId::Role::kPs, 0};
  options.bind = values.text("--bind");
  if (options.bind.empty()) {
    throw Error(ErrorCode::kUsage,
                "--bind is missing: where to listen (for example --bind 0.0.0.0:2222)");
  }
  options.spec = read_flag("--bind", [&] { return ClusterSpec::parse("ps=" + options.bind); });
  options.link = values.choice("--link", links_of_processes()).value_or(options.link);
  options.security = read_security(values);
  options.security.loaded = secure_server(options.security, options.bind);
  if (options.security.tls == Tls::kNever) log.warning(fmt::format("--insecure: {}", kGivenUp));
  options.threads = int(values.whole_number("--threads", 1, kMostThreads).value_or(0));
  options.join_timeout = std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(values.positive_number("--join-timeout").value_or(300)));
  options.reconnect_timeout = std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(values.number_from_zero("--reconnect-timeout").value_or(30)));
  options.say = [&log](const std::string& line) { log.info(line); };
  options.warn = [&log](const std::string& line) { log.warning(line); };
  options.progress_text = [&log](const PsSummary& now) {
    Cluster cluster;
    cluster.task = {TaskId::Role::kPs, 0};
    return ps_progress(now, cluster, &log);
  };
  return options;
}

void say_end(const Log& log, const PsSummary& summary) {
  log.info(fmt::format("job {} has ended{}: {} in {:.1f} s; its variables are forgotten",
                       summary.job, summary.error.empty() ? "" : " (" + summary.error + ")",
                       counted(summary.applied, "step"), summary.seconds));
}

/// Serves one job. Returns false if the server was stopped between two jobs.
bool serve_next(const PsOptions& options, const Log& log) {
  PsSummary summary;
  try {
    serve(options, &summary);
  } catch (const Error& error) {
    const bool idle = summary.job.empty();
    if (error.code() == ErrorCode::kCancelled && idle) return false;
    // If all workers have left, the job is over, but the server goes on.
    if (error.code() != ErrorCode::kUnavailable || idle) throw;
  }
  say_end(log, summary);
  return true;
}

}  // namespace

std::vector<CommandLine> server_lines() { return {server_flags()}; }

int server_command(const Arguments& arguments) {
  const std::optional<FlagValues> values = parse_job(server_flags(), arguments, nullptr);
  if (!values) return 0;
  return values->with_places([&] {
    LogOptions log_to = log_options({}, read_run_options(*values));
    log_to.task = "server";
    const Log log(log_to);
    PsOptions options = server_options(*values, log);
    const auto jobs = values->whole_number("--jobs", 1, INT64_MAX);
    Interrupt interrupt;
    options.stop_fd = interrupt.fd();
    options.stop_within = kWorkersMayTake;
    options.stopping = [&] {
      interrupt.take_time();
      log.info("told to stop; waiting until its workers have left");
    };
    options.listening = [&](const std::string& at) { log.info("listening on " + at); };
    for (std::int64_t job = 0; job < jobs.value_or(INT64_MAX); ++job) {
      if (!serve_next(options, log)) break;
    }
    return 0;
  });
}

}  // namespace paceline
