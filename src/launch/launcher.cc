#include "launch/launcher.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/cores.h"
#include "base/grouped_digits.h"
#include "base/memory_file.h"
#include "base/print_text.h"
#include "base/printed.h"
#include "explain/explain.h"
#include "kernels/device_kind.h"
#include "launch/lab/lab.h"
#include "launch/line_prefixer.h"
#include "launch/ssh/remote_hosts.h"
#include "net/held_ports.h"
#include "net/tls/link_security.h"
#include "paceline/error.h"
#include "run/interrupt.h"
#include "run/log.h"
#include "run/program_run.h"
#include "run/report/expected_in_words.h"
#include "run/report/report_strategy.h"
#include "run/report/run_folder.h"
#include "run/task_devices.h"
#include "trace/job_timeline.h"

namespace paceline {
namespace {

constexpr Duration kShortLife = std::chrono::seconds(10);
constexpr int kMostShortLives = 3;
constexpr int kWrongUsage = 2;
constexpr Duration kReachedWithin = std::chrono::seconds(3);  // another host, by a signal

TimePoint now() { return std::chrono::steady_clock::now(); }

int milliseconds_until(const std::optional<TimePoint>& moment) {
  if (!moment) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*moment - now());
  return int(std::max<std::chrono::milliseconds::rep>(left.count(), 0));
}

}  // namespace

TaskGroup::TaskGroup(const TaskGroupOptions& options) : options_(options) {}

TaskGroup::~TaskGroup() {
  children_.clear();
  if (result_.interrupted) signals_.drain();
}

void TaskGroup::start(const TaskCommand& command, const std::string& prefix, TaskStarter* host) {
  starts_.push_back({command, prefix, host == nullptr ? &this_host_ : host, now()});
  children_.push_back(begin(starts_.back()));
}

std::unique_ptr<RunningTask> TaskGroup::begin(const Start& start) const {
  const TaskCommand& command = start.command;
  return start.host->start(
      command, prefixed_lines(start.prefix, options_.out),
      prefixed_lines(command.prefixed_errors ? start.prefix : "", options_.err));
}

TaskGroupResult TaskGroup::run() {
  while (any_running() || evaluator_running()) {
    wait_for_events();
    for (const auto& child : children_) child->forward_output();
    take_signal();
    take_stops();
    take_exits();
    after_workers();
    after_ps();
    after_peers();
    after_job();
    after_the_others();
    if (next_ && now() >= *next_) {
      next_.reset();
      asked_ ? kill_all() : ask_all(SIGTERM, options_.stop_within);
    }
  }
  return result_;
}

bool TaskGroup::any_running() const { return any_running(true) || any_running(false); }

bool TaskGroup::any_running(bool ps) const {
  return std::ranges::any_of(children_, [&](const auto& child) {
    return child->running() && child->is_ps() == ps && !child->is_evaluator();
  });
}

bool TaskGroup::evaluator_running() const {
  return std::ranges::any_of(
      children_, [](const auto& child) { return child->running() && child->is_evaluator(); });
}

void TaskGroup::wait_for_events() {
  std::vector<pollfd> watched = {{signals_.fd(), POLLIN, 0}, {child_signals_.fd(), POLLIN, 0}};
  for (const auto& child : children_) {
    if (child->running()) child->watch(watched);
  }
  std::optional<TimePoint> wakes = next_;
  if (stopped_until_ && (!wakes || *stopped_until_ < *wakes)) wakes = stopped_until_;
  poll(watched.data(), watched.size(), milliseconds_until(wakes));
}

void TaskGroup::take_signal() {
  signalfd_siginfo info;
  while (read(signals_.fd(), &info, sizeof info) == sizeof info) {
    if (result_.interrupted) {
      if (now() - interrupted_at_ >= kSameRequest) kill_all();
    } else {
      result_.interrupted = true;
      interrupted_at_ = now();
      ask_all(int(info.ssi_signo), options_.interrupt_within);
    }
  }
}

void TaskGroup::take_stops() {
  child_signals_.drain();
  for (const auto& child : children_) child->note_stops();
}

void TaskGroup::take_exits() {
  std::vector<std::size_t> ended;
  for (std::size_t task = 0; task < children_.size(); ++task) {
    RunningTask& child = *children_[task];
    if (!child.running() || !child.has_ended()) continue;
    child.reap();
    if (child.status().signal == SIGKILL && child.host().empty())
      child.explain(memory_kills_.newly_killed());
    ended.push_back(task);
  }
  // If several tasks have ended at once, a killed one comes first: the others ended because of it.
  std::stable_partition(ended.begin(), ended.end(),
                        [&](std::size_t task) { return children_[task]->status().signal != 0; });
  for (const std::size_t task : ended) judge(task);
}

void TaskGroup::judge(std::size_t task) {
  const RunningTask& child = *children_[task];
  const bool was_stopped = std::ranges::count(result_.stopped, child.name()) > 0;
  if (asked_ || was_stopped || child.status().good()) return;
  if (options_.on_failure == OnFailure::kRestart && start_again(task)) return;
  const TaskFailure failure{child.name(), child.status(), child.host()};
  if (child.is_evaluator()) {
    result_.evaluator_failure = failure;
    if (options_.say) options_.say(child.name() + " has failed: the job goes on without it");
    return;
  }
  if (!result_.first_failure) result_.first_failure = failure;
  if (options_.on_failure != OnFailure::kContinue) return ask_all(SIGTERM, options_.stop_within);
  if (child.is_ps() && any_running(false)) end_without(child);
}

// The variables of this ps are lost, and the workers would wait in vain until somebody starts it
// again.
void TaskGroup::end_without(const RunningTask& ps) {
  if (options_.say) {
    options_.say(fmt::format(
        "{} has ended ({}), and no worker can go on without its variables: the job is ended "
        "(--on-failure restart would start it again)",
        ps.name(), ps.status().str()));
  }
  ask_all(SIGTERM, options_.stop_within);
}

// Starts the task again. Returns false if its host can start none, and for a task that would fail
// again: its command is wrong, or its processes end as soon as they have begun.
bool TaskGroup::start_again(std::size_t task) {
  const RunningTask& child = *children_[task];
  Start& start = starts_[task];
  const bool short_life = now() - start.at < kShortLife;
  start.short_lives = short_life ? start.short_lives + 1 : 0;
  const bool in_vain = child.status().code == kWrongUsage || start.short_lives > kMostShortLives;
  if (in_vain || !start.host->can_start()) return false;
  if (options_.say) {
    options_.say(
        fmt::format("{} has ended ({}): it is started again", child.name(), child.status().str()));
  }
  start.command.arguments = start.command.restart_arguments;
  start.at = now();
  children_[task] = begin(start);
  return true;
}

void TaskGroup::after_workers() {
  if (workers_over_ || any_running(false)) return;
  workers_over_ = true;
  if (asked_) {
    ask_ps();
  } else {
    // A ps may wait for a worker that has failed and does not return; only the launcher knows this.
    next_ = now() + options_.outlives_the_other_job;
  }
}

// The ps tasks end only when training is over and nobody is connected. A worker that still runs
// then was started too late, and waits for them in vain.
void TaskGroup::after_ps() {
  const bool has_ps = std::ranges::any_of(children_, &RunningTask::is_ps);
  if (ps_over_ || asked_ || !has_ps || any_running(true)) return;
  ps_over_ = true;
  next_ = now() + options_.outlives_the_other_job;
}

// A worker that has trained with the ended tasks ends by itself, but one that was started again may
// wait in vain for them.
void TaskGroup::after_peers() {
  int left = 0, ended_well = 0;
  for (const auto& child : children_) {
    if (child->is_evaluator() || child->is_ps() == options_.workers_meet) continue;
    if (child->running()) ++left;
    if (!child->running() && child->status().good()) ++ended_well;
  }
  if (left > (options_.workers_meet ? 1 : 0) || ended_well == 0) return;
  for (const auto& child : children_) {
    if (!child->is_ps() && !child->is_evaluator()) child->end_input();
  }
}

void TaskGroup::after_job() {
  if (asked_ || any_running()) return;
  next_.reset();
  for (const auto& child : children_) child->end_input();
}

// The launcher waits for the workers first, then for the ps tasks, and then for the evaluator.
bool TaskGroup::is_waited_for(const RunningTask& child) const {
  if (!child.running()) return false;
  return child.is_evaluator() ? !any_running() : child.is_ps() == workers_over_;
}

// A stopped task hears nothing, so it must be killed. But if all tasks are stopped, the user wants
// them to pause.
void TaskGroup::after_the_others() {
  const bool some_ended = std::ranges::any_of(
      children_, [](const auto& child) { return !child->running() && !child->is_evaluator(); });
  const auto goes_on = [&](const auto& child) {
    return is_waited_for(*child) && !child->stopped();
  };
  const auto is_stopped = [&](const auto& child) {
    return is_waited_for(*child) && child->stopped();
  };
  const bool only_stopped =
      std::ranges::none_of(children_, goes_on) && std::ranges::any_of(children_, is_stopped);
  if (!only_stopped || !(asked_ || some_ended)) return stopped_until_.reset();
  if (!stopped_until_) stopped_until_ = now() + options_.stopped_within;
  if (now() < *stopped_until_) return;
  stopped_until_.reset();
  for (const auto& child : children_) {
    if (!is_stopped(child)) continue;
    result_.stopped.push_back(child->name());
    child->send_signal(SIGKILL);
    if (options_.say) {
      options_.say(child->name() +
                   " was stopped (SIGSTOP) and did not go on after the others: it is ended");
    }
  }
}

// Workers are asked first: a worker whose ps ended earlier would report a lost ps instead of doing
// what it was asked to do.
void TaskGroup::ask_all(int signal, Duration within) {
  asked_ = true;
  signal_ = signal;
  within_ = within;
  next_ = now() + within;
  for (const auto& child : children_) {
    if (!child->is_ps()) child->send_signal(signal);
  }
  if (workers_over_) ask_ps();
}

void TaskGroup::ask_ps() {
  if (killed_) return;
  next_ = now() + within_;
  for (const auto& child : children_) {
    if (child->is_ps()) child->send_signal(signal_);
  }
}

void TaskGroup::kill_all() {
  asked_ = true;
  for (const auto& child : children_) killed_ ? child->give_up() : child->send_signal(SIGKILL);
  killed_ = true;
  next_ = now() + kReachedWithin;
}

namespace {

// The files of the tasks' reports and timelines until they are merged. The destructor removes them,
// whatever ends the launcher.
class TaskFiles {
 public:
  explicit TaskFiles(bool has_timelines) : has_timelines_(has_timelines) {}
  std::string report_of(const std::string& task) const { return reports_[task].path(); }
  std::string timeline_of(const std::string& task) const { return timelines_[task].path(); }
  std::vector<std::string> of(const TaskId& task) const {
    std::vector<std::string> files = {report_of(task.str())};
    if (has_timelines_) files.push_back(timeline_of(task.str()));
    return files;
  }

 private:
  const bool has_timelines_;
  mutable std::map<std::string, MemoryFile> reports_, timelines_;
};

// The ps tasks are first, because the others wait for them.
std::vector<TaskId> all_tasks(const Cluster& cluster) {
  std::vector<TaskId> tasks;
  tasks.reserve(std::size_t(cluster.launch.ps) + std::size_t(cluster.launch.workers));
  for (int i = 0; i < cluster.launch.ps; ++i) tasks.push_back({TaskId::Role::kPs, i});
  for (int i = 0; i < cluster.launch.workers; ++i) tasks.push_back({TaskId::Role::kWorker, i});
  return tasks;
}

ClusterSpec local_spec(const Cluster& cluster, const std::vector<std::string>& addresses) {
  if (cluster.existing_servers) return {cluster.spec.ps, addresses};
  const auto first_worker = addresses.begin() + cluster.launch.ps;
  return {{addresses.begin(), first_worker}, {first_worker, addresses.end()}};
}

int host_of(const LabOptions& lab, const TaskId& task) {
  return (task.role == TaskId::Role::kPs ? lab.ps : lab.workers)[std::size_t(task.index)];
}

// Each emulated host has all ports for itself, so tasks on different hosts may have the same one.
std::vector<std::string> lab_addresses(const LabOptions& lab, const std::vector<TaskId>& tasks) {
  constexpr int kFirstPort = 7000;
  std::vector<std::string> addresses;
  addresses.reserve(tasks.size());
  for (const TaskId& task : tasks) {
    addresses.push_back(
        fmt::format("{}:{}", lab_address(host_of(lab, task)), kFirstPort + int(addresses.size())));
  }
  return addresses;
}

constexpr const char* kEvaluatorTask = "evaluator:0";

std::string padded_prefix(const Cluster& cluster, const std::string& task) {
  std::size_t width = cluster.launch.evaluator ? std::string_view(kEvaluatorTask).size() : 0;
  for (const TaskId& other : all_tasks(cluster)) width = std::max(width, other.str().size());
  return fmt::format("{:<{}} | ", task, width);
}

std::vector<Report> read_reports(const std::vector<TaskId>& tasks, const TaskFiles& files) {
  std::vector<Report> reports;
  for (const TaskId& task : tasks) {
    try {
      reports.push_back(read_report(files.report_of(task.str())));
    } catch (const Error&) {
      // A task that was killed leaves no report.
    }
  }
  return reports;
}

std::string cause_of(const TaskFailure& failure, const TaskFiles& files) {
  std::string cause = failure.status.str();
  try {
    const Report report = read_report(files.report_of(failure.task));
    if (!report.error.empty()) cause = report.error;
  } catch (const Error&) {
    // The task died before it could say why.
  }
  const std::string where = failure.host.empty() ? "" : fmt::format(" (on {})", failure.host);
  return fmt::format("{}{} failed first: {}", failure.task, where, cause);
}

// Returns the global step of the newest checkpoint, or 0 before the first one; nothing if the run
// keeps no checkpoints.
std::optional<std::int64_t> kept_step(const RunOptions& run) {
  if (run.out.empty() || run.save_every.never()) return std::nullopt;
  return saved_step(run).value_or(0);
}

struct StepsMade {
  // The steps of this run, including those that were lost and made again.
  std::int64_t made = 0;
  // The global step that the run reached; if there are checkpoints, that of the newest one.
  std::int64_t reached = 0;
  std::int64_t lost = 0;           // global steps after `reached`
  std::vector<std::string> parts;  // of each worker
  bool complete = false;           // `parts` has all steps that were made
};

// Counts the steps of a run. ps 0 also counts the steps of workers that failed and left no report.
// In rounds, one step of each worker is one global step; with --accumulate K, a global step takes K
// steps.
StepsMade steps_made(const Report& merged, int workers, std::optional<std::int64_t> kept) {
  const bool together = in_rounds(merged);
  StepsMade steps;
  std::int64_t sum = 0, applied = 0;
  for (const TaskReport& task : merged.tasks) {
    if (task.task == "ps:0") applied = task.steps;
    if (!task.is_worker()) continue;
    const std::int64_t own = task.steps / merged.accumulate;
    sum = together ? std::max(sum, own) : sum + own;
    steps.parts.push_back(grouped_digits(own));
  }
  steps.made = together ? sum : std::max(sum, applied);
  const std::int64_t seen = merged.global_step.value_or(steps.made);
  steps.reached = kept ? *kept : std::max(steps.made, seen);
  steps.lost = std::max<std::int64_t>(seen - steps.reached, 0);
  steps.complete = int(steps.parts.size()) == workers && steps.made == sum;
  return steps;
}

// Returns the steps of a run: "3,000 global steps (1,500 + 1,500)"; or "9,000 global steps, 3,000
// of them in this run (…)" after a resume; or how many steps the checkpoints keep, if steps were
// lost. Empty if nothing was trained.
std::string steps_text(const Report& merged, int workers, std::optional<std::int64_t> kept) {
  if (!merged.first_loss) return "";
  const StepsMade steps = steps_made(merged, workers, kept);
  if (steps.lost > 0) {
    return fmt::format("{} kept, {} after that lost\n", counted(steps.reached, "global step"),
                       grouped_digits(steps.lost));
  }
  std::string text = counted(steps.reached, "global step");
  if (steps.reached > steps.made) {
    text += fmt::format(", {} of them in this run", grouped_digits(steps.made));
  }
  if (steps.complete && workers > 1) text += fmt::format(" ({})", fmt::join(steps.parts, " + "));
  return text + "\n";
}

// Returns the last lines of a run. If a task failed, they do not say that nothing held the run
// back.
std::string last_lines(const Report& merged, int workers, std::optional<std::int64_t> kept,
                       bool failed) {
  const auto line = [](const std::string& text) { return text.empty() ? "" : text + "\n"; };
  const bool explains = !failed || explain(merged).is_alarm();
  return steps_text(merged, workers, kept) + line(expected_in_words(merged)) +
         line(explains ? explanation(merged) : "");
}

void run_on(const Lab& lab, int host, TaskCommand& command) {
  std::vector<std::string> words = {command.program};
  words.insert(words.end(), command.arguments.begin(), command.arguments.end());
  words = lab.on_host(host, words);
  command.program = words.front();
  command.arguments.assign(words.begin() + 1, words.end());
}

TaskCommand command_of(const Cluster& cluster, const RunOptions& run, const LaunchProgram& program,
                       const TaskId& task, const TaskPlace& place) {
  TaskCommand command{task.str(), program.path, program.arguments, task.role == TaskId::Role::kPs,
                      program_run_of(run).log_format != "json"};
  auto more = task_arguments(cluster, task, place);
  if (program.by_variable) {
    more.insert(more.end(), program.task_flags.begin(), program.task_flags.end());
    command.task_variable = task_variable(more);
  } else {
    command.arguments.insert(command.arguments.end(), more.begin(), more.end());
  }
  if (const auto& security = cluster.links.security.loaded) command.key = security->key;
  return command;
}

void check_tasks_allowed(std::size_t tasks) {
  // A task with one computing thread was seen to have this many threads: its own, and those of a
  // link, of heartbeats and of timers.
  constexpr std::int64_t kLeastThreads = 6;
  check_processes_allowed(counted(std::int64_t(tasks), "task"),
                          kLeastThreads * std::int64_t(tasks));
}

Places places_with(const TaskFiles& files, const Cluster& cluster,
                   const std::vector<std::string>& addresses) {
  Places places = places_here(cluster, addresses);
  auto place = places.tasks.begin();
  for (const TaskId& task : all_tasks(cluster)) (place++)->files = files.of(task);
  return places;
}

Places places_elsewhere(const std::vector<TaskId>& tasks, RemoteHosts& hosts) {
  Places places{.where = hosts.where(), .shared = hosts.shared_text()};
  for (const TaskId& task : tasks) {
    RemoteHost& host = hosts.of(task);
    places.tasks.push_back({.address = hosts.address_of(task),
                            .files = host.place_of(task.str()).files,
                            .cores = host.cores(),
                            .workers = hosts.workers_beside(task),
                            .flags = hosts.flags_of(task),
                            .host = &host});
  }
  return places;
}

void connect(RemoteHosts& hosts, const Cluster& cluster, const std::vector<TaskId>& tasks,
             const LaunchProgram& program, const TaskFiles& files, const TaskGroupOptions& options,
             int ending) {
  hosts.connect({.tasks = tasks,
                 .program = program.path,
                 .files_here = [&](const TaskId& task) { return files.of(task); },
                 .prefix = [&](const std::string& host) { return padded_prefix(cluster, host); },
                 .err = options.err},
                ending);
}

// The evaluator computes on one thread, at the lowest priority.
TaskCommand evaluator_command(const LaunchProgram& program, const RunOptions& run) {
  TaskCommand command{.name = kEvaluatorTask,
                      .program = program.path,
                      .arguments = program.arguments,
                      .prefixed_errors = program_run_of(run).log_format != "json",
                      .is_evaluator = true};
  const std::vector<std::string> more = evaluator_arguments();
  command.arguments.insert(command.arguments.end(), more.begin(), more.end());
  command.restart_arguments = command.arguments;
  return command;
}

void write_timeline_of_all(const RunOptions& run, const std::vector<TaskId>& tasks,
                           const TaskFiles& files) {
  std::vector<TaskTimeline> parts;
  for (const TaskId& task : tasks) {
    try {
      parts.push_back(read_task_timeline(files.timeline_of(task.str())));
    } catch (const Error&) {
      // A killed task leaves no timeline, or an incomplete one.
    }
  }
  const JobTimeline job = merge_timelines(std::move(parts));
  write_job_timeline(run.timeline, job);
  if (!run.quiet) print_text(stdout, summary_of(job));
}

struct Ending {
  int status = 0;
  std::string error;  // empty: all went well
};

Ending ending_of(const TaskGroupResult& result, const StepsMade& steps, const RunOptions& run,
                 const TaskFiles& files) {
  Ending ending;
  if (result.first_failure) {
    ending = {result.first_failure->status.code == 2 ? 2 : 1,
              cause_of(*result.first_failure, files)};
  } else if (result.evaluator_failure) {
    ending = {1, cause_of(*result.evaluator_failure, files)};
  } else if (result.interrupted) {
    ending = {kInterruptedStatus, "interrupted"};
  } else if (!result.stopped.empty() && steps.lost > 0) {
    ending = {1, fmt::format("{} was stopped (SIGSTOP) and was ended, and with it steps are lost",
                             fmt::join(result.stopped, ", "))};
  }
  // Without --out, a line about resuming is printed only if the user ended the run. A job that
  // failed before its first step would fail again.
  const bool would_fail_again = steps.complete && steps.made == 0;
  const bool told =
      result.interrupted || (!ending.error.empty() && !run.out.empty() && !would_fail_again);
  if (told) ending.error += how_to_go_on(run);
  return ending;
}

// With --log-format json, the error is a line of the log.
void print_end(const std::string& steps, bool failed, const std::string& error,
               const RunOptions& run) {
  print_text(stdout, steps);
  std::fflush(stdout);
  const ProgramRun& told = program_run_of(run);
  if (!error.empty() && told.log != nullptr && told.log_format == "json") {
    told.log->write(failed ? LogLevel::kError : LogLevel::kInfo, error);
  } else if (failed) {
    print_text(stderr, fmt::format("paceline: error: {}\n", error));
  } else if (!error.empty()) {
    print_text(stderr, fmt::format("paceline: {}\n", error));
  }
}

}  // namespace

std::vector<std::string> Places::addresses() const {
  std::vector<std::string> all;
  for (const TaskPlace& place : tasks) all.push_back(place.address);
  return all;
}

Places places_here(const Cluster& cluster, const std::vector<std::string>& addresses) {
  const int cores = usable_cores();
  Places places{.where = "this machine",
                .shared = fmt::format("  The tasks share {}.\n", counted(cores, "core"))};
  for (const std::string& address : addresses)
    places.tasks.push_back({.address = address, .cores = cores, .workers = cluster.launch.workers});
  return places;
}

std::vector<std::string> task_arguments(const Cluster& cluster, const TaskId& task,
                                        const TaskPlace& place) {
  std::vector<std::string> arguments = {
      "--launched",       "--cluster", cluster.spec.str(),  "--task", task.str(), "--cluster-id",
      cluster.cluster_id, "--report",  place.files.front(),
  };
  if (place.files.size() > 1) arguments.insert(arguments.end(), {"--timeline", place.files[1]});
  arguments.insert(arguments.end(), place.flags.begin(), place.flags.end());
  if (task.role == TaskId::Role::kPs) return arguments;
  arguments.insert(arguments.end(),
                   {"--device", device_of(cluster, task), "--threads",
                    std::to_string(threads_of_worker(cluster, place.cores, place.workers))});
  return arguments;
}

std::string task_variable(const std::vector<std::string>& arguments) {
  nlohmann::ordered_json flags;
  for (auto word = arguments.begin(); word != arguments.end(); ++word) {
    if (*word == "--launched") continue;
    const std::string key = word->substr(2);
    const auto value = std::next(word);
    if (value == arguments.end() || value->starts_with("--")) {
      flags[key] = true;
    } else {
      flags[key] = *value;
      word = value;
    }
  }
  return flags.dump();
}

std::vector<std::string> evaluator_arguments() { return {"--launched", "--task", kEvaluatorTask}; }

std::string announcement(const Cluster& cluster, const Places& places) {
  const std::string& where = places.where;
  const std::string workers = counted(cluster.launch.workers, "worker");
  std::string text = fmt::format("{} ps + {} on {}\n", cluster.launch.ps, workers, where);
  if (cluster.launch.ps == 0)
    text = fmt::format("{} on {}, without a parameter server\n", workers, where);
  if (cluster.existing_servers) {
    text = fmt::format("{} on {}, with existing servers, which stay: {}\n", workers, where,
                       fmt::join(cluster.spec.ps, ", "));
  }
  std::size_t width = 17;
  for (const auto* addresses : {&cluster.spec.ps, &cluster.spec.workers}) {
    for (const std::string& address : *addresses) width = std::max(width, address.size());
  }
  auto place = places.tasks.begin();
  for (const TaskId& task : all_tasks(cluster)) {
    const bool ps = task.role == TaskId::Role::kPs;
    const std::string& address =
        (ps ? cluster.spec.ps : cluster.spec.workers)[std::size_t(task.index)];
    const int threads = threads_of_worker(cluster, place->cores, place->workers);
    ++place;
    std::string device = devices_of(cluster, task);
    if (!ps) device += ", " + counted(threads, "thread");
    text += fmt::format("  {:<10}{:<{}}  {}\n", task.str(), address, width, device);
  }
  if (cluster.launch.evaluator) {
    text += fmt::format("  {:<29}evaluates the checkpoints\n", kEvaluatorTask);
  }
  if (device_kind(cluster.device.kind).shares_cores) {
    text += places.shared;
  } else if (cluster.device.index >= 0 && cluster.launch.workers > 1) {
    text +=
        fmt::format("  Warning: all {} workers share device {}; --device {} gives each its own.\n",
                    cluster.launch.workers, device_of(cluster, {}), cluster.device.kind);
  }
  return text;
}

int launch(const Cluster& asked, const RunOptions& run, const LaunchProgram& program,
           const TaskGroupOptions& options) {
  const std::vector<TaskId> tasks = all_tasks(asked);
  const bool here = !program.ssh.asked();
  if (here) check_tasks_allowed(tasks.size());
  const LabOptions& hosts = program.lab;
  std::optional<Lab> lab;
  if (hosts.asked()) lab.emplace(hosts.hosts, LabLinks{hosts.gbps, hosts.delay_ms});
  const HeldPorts ports(lab || !here ? 0 : int(tasks.size()));
  const TaskFiles files(!run.timeline.empty());
  RemoteHosts remote(program.ssh);
  // From here on, the group keeps a signal that asks to end, until it can pass the signal on to the
  // tasks.
  TaskGroup group(options);
  if (!here) connect(remote, asked, tasks, program, files, options, group.ending_fd());
  const Places places =
      here ? places_with(files, asked, lab ? lab_addresses(hosts, tasks) : ports.addresses())
           : places_elsewhere(tasks, remote);
  Cluster cluster = asked;
  cluster.spec = local_spec(cluster, places.addresses());
  if (!run.quiet) {
    print_text(stdout, announcement(cluster, places));
    if (lab) print_text(stdout, lab_text(hosts));
  }
  std::fflush(stdout);

  for (std::size_t i = 0; i < tasks.size(); ++i) {
    TaskCommand command = command_of(cluster, run, program, tasks[i], places.tasks[i]);
    if (lab) run_on(*lab, host_of(hosts, tasks[i]), command);
    const bool resumes = !command.is_ps && !run.out.empty();
    command.restart_arguments = resumes ? resume_arguments(command.arguments) : command.arguments;
    group.start(command, padded_prefix(cluster, command.name), places.tasks[i].host);
  }
  if (cluster.launch.evaluator) {
    group.start(evaluator_command(program, run), padded_prefix(cluster, kEvaluatorTask));
  }
  const TaskGroupResult result = group.run();

  Report merged = merge(read_reports(tasks, files));
  merged.flags = program_run_of(run).flags;  // without the flags that the launcher gave its tasks
  const std::optional<std::int64_t> kept = kept_step(run);
  const StepsMade steps = steps_made(merged, cluster.launch.workers, kept);
  const Ending ending = ending_of(result, steps, run, files);
  if (!ending.error.empty()) merged.error = ending.error;
  write_reports(asked, run, merged);
  if (!run.timeline.empty() && !is_left_as_it_is(run, merged, run.timeline)) {
    write_timeline_of_all(run, tasks, files);
  }
  const bool failed = ending.status == 1 || ending.status == 2;
  print_end(run.quiet ? "" : last_lines(merged, cluster.launch.workers, kept, failed), failed,
            ending.error, run);
  return ending.status;
}

}  // namespace paceline
