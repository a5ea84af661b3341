#include "cli/task_program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <utility>

#include "base/failure_text.h"
#include "base/plain_text.h"
#include "base/print_text.h"
#include "checkpoint/best_keeper.h"
#include "checkpoint/checkpoints.h"
#include "cli/flags/flags.h"
#include "cli/flags/launch_environment.h"
#include "kernels/device_kind.h"
#include "launch/job_security.h"
#include "launch/launcher.h"
#include "launch/ps_task.h"
#include "paceline/error.h"
#include "params/job_control.h"
#include "params/round_fence.h"
#include "params/strategy/strategies.h"
#include "run/interrupt.h"
#include "run/limits.h"
#include "run/log.h"
#include "run/program_run.h"
#include "run/report/report.h"
#include "run/report/run_folder.h"

namespace paceline {

namespace {

int exit_status(ErrorCode code) {
  if (code == ErrorCode::kUsage) return 2;
  if (code == ErrorCode::kCancelled) return 130;
  return 1;
}

// Writes the session's last report with this error, unless that report already has an error. If no
// session has reported, the report has only the model, the strategy, the flags and the task.
void report_failure(const Program& program, Report report, const std::string& error) {
  if (!report.error.empty()) return;
  if (report.tasks.empty()) {
    report.model = program.model;
    report.strategy = program.cluster.strategy.name;
    report.flags = program_run_of(program.run).flags;
    report.tasks.emplace_back().task = program.cluster.task.str();
  }
  report.error = error;
  write_reports(program.cluster, program.run, report);
}

/// The code and the message with which the user sees an exception.
struct Failure {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
};

Failure failure_of(const std::exception& exception) {
  const std::string limit = limit_behind(exception);
  if (const auto* error = dynamic_cast<const Error*>(&exception))
    return {error->code(), error->what() + limit};
  return {ErrorCode::kInternal, failure_text(exception) + limit};
}

// With --log-format json, the error is a line of the log.
void print_error(const RunOptions& run, const std::string& message) {
  const ProgramRun& told = program_run_of(run);
  if (told.log_format == "json") return told.log->error(message);
  std::fflush(stdout);
  print_text(stderr, plain_lines(fmt::format("paceline: error: {}\n", message)));
}

// Throws if the run has no checkpoint from which it can go on after `lost`, or makes no checkpoints
// at all.
void check_can_begin_again(const RunOptions& run, const Error& lost) {
  const auto fail = [&](const std::string& why) {
    throw Error(ErrorCode::kUnavailable, fmt::format("{}; {}", lost.what(), why));
  };
  if (run.out.empty() || run.save_every.never()) {
    fail("no checkpoint was made to go on from: --out DIR and --save-every would have saved them");
  }
  const Checkpoints checkpoints(checkpoints_folder(run));
  if (checkpoints.newest_whole(WholeCheck::kSizes).whole) return;
  fail(
      fmt::format("there is no checkpoint in {} yet to go on from: a shorter --save-every would "
                  "have saved one",
                  run.out));
}

// Returns the options of the run that goes on after `lost`. If a ps was lost with its values, it
// goes on from the chief's newest checkpoint, which only the chief reads. If the other tasks have
// left this worker behind, it goes on with their values.
RunOptions begin_again(const Cluster& cluster, const RunOptions& run, const Error& lost) {
  const bool left_behind = dynamic_cast<const LeftBehind*>(&lost) != nullptr;
  if (cluster.is_chief() && !left_behind) check_can_begin_again(run, lost);
  const ProgramRun& told = program_run_of(run);
  RunOptions again = run;
  again.resume = true;
  again.overwrite = false;
  if (told.last_report->global_step && !left_behind) {
    own_program_run(again).lost_at = told.last_report->global_step;
  }
  std::string left;
  if (run.seconds) {
    again.seconds = std::max(0.0, *run.seconds - *told.seconds_counted);
    left = fmt::format("; {:.1f} of {:.4g} s are left", *again.seconds, *run.seconds);
  }
  if (left_behind) {
    told.log->warning(fmt::format("{}; joins them again{}", lost.what(), left));
  } else {
    told.log->warning(fmt::format("{}; goes back to the newest checkpoint{}{}", lost.what(),
                                  cluster.is_chief() ? "" : " of the chief", left));
  }
  return again;
}

// Trains, and trains again if a ps was lost with its values, or if this worker was left behind.
// After several losses without a step in between, passes the error on.
void train(const Program& program, RunOptions run) {
  constexpr int kMostInVain = 3;
  double seconds_counted = 0;
  own_program_run(run).seconds_counted = &seconds_counted;
  for (int in_vain = 0;;) {
    *program_run_of(run).last_report = {};
    seconds_counted = 0;
    try {
      return program.work(program.cluster, run);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kAborted || program_run_of(run).interrupt->interrupted())
        throw;
      in_vain = program_run_of(run).last_report->steps() > 0 ? 0 : in_vain + 1;
      if (in_vain > kMostInVain) throw;
      run = begin_again(program.cluster, run, error);
    }
  }
}

void run_task(const Program& program, const RunOptions& run) {
  const bool ps = program.cluster.process == Cluster::Process::kTask &&
                  program.cluster.task.role == TaskId::Role::kPs;
  if (ps) {
    run_ps(program.cluster, run, program.model, program.after_reads);
  } else {
    train(program, run);
  }
}

int evaluate(const Program& program, const Log& log) {
  if (program.evaluate) {
    run_evaluator(program.cluster, program.run, program.evaluate, log);
  } else {
    log.warning("this program evaluates no checkpoints: the evaluator ends");
  }
  return 0;
}

/// Returns, in words, why the launched tasks are on several hosts; empty if they are not.
std::string why_apart(const Program& program) {
  if (program.lab.hosts > 1) return "the tasks are on several emulated hosts";
  return program.ssh.several() ? "the tasks are on several hosts" : "";
}

LaunchProgram launched_program(const Program& program) {
  if (program.command.empty())
    return {std::filesystem::read_symlink("/proc/self/exe"), program.arguments, program.lab};
  return {.path = program.command.front(),
          .arguments = {program.command.begin() + 1, program.command.end()},
          .lab = program.lab,
          .by_variable = true,
          .task_flags = program.command_flags,
          .ssh = program.ssh};
}

int run_prepared(const Program& program, const Log& log) {
  RunOptions run = program.run;
  ProgramRun& told = own_program_run(run);
  told.log = &log;
  told.resume_command = resume_command(program_invocation_name, program.arguments);
  run.timeline = timeline_file(program.cluster, run);
  if (program.cluster.process == Cluster::Process::kLauncher) {
    TaskGroupOptions options;
    options.on_failure = program.cluster.launch.on_failure;
    options.workers_meet = strategy_kind(program.cluster).reduces;
    options.say = [&log](const std::string& line) { log.warning(line); };
    if (program.cluster.launch.evaluator && !program.evaluate) {
      throw Error(ErrorCode::kUsage, "--evaluator: this program evaluates no checkpoints");
    }
    // Writing a checkpoint may take minutes, so tasks may take long to end. A second Ctrl-C ends
    // them.
    if (!run.out.empty()) {
      options.interrupt_within = std::chrono::minutes(10);
      options.stop_within = std::chrono::minutes(1);
    }
    return launch(program.cluster, run, launched_program(program), options);
  }
  run.observers = program.observers.observers();
  Interrupt interrupt(program.cluster.launch.launched ? STDIN_FILENO : -1);
  told.interrupt = &interrupt;
  Report last_report;
  told.last_report = &last_report;
  bool ended_well = true;
  told.on_failed_end = [&](const std::string& message) {
    ended_well = false;
    print_error(run, message);
  };
  try {
    run_task(program, run);
  } catch (const JobIsOver& over) {
    log.warning(over.what());
    return 0;
  } catch (const std::exception& error) {
    report_failure(program, last_report, failure_of(error).message);
    throw;
  }
  return ended_well ? 0 : exit_status(ErrorCode::kInternal);
}

int run_with(const Program& program, const Log& log) {
  if (program.cluster.process == Cluster::Process::kEvaluator) return evaluate(program, log);
  // For a command of any kind, the tasks themselves look after the files of their run.
  const auto lock =
      program.command.empty() ? prepare_run_folder(program.cluster, program.run) : nullptr;
  const int status = run_prepared(program, log);
  if (lock && program.run.keep_best) {
    const Checkpoints checkpoints(checkpoints_folder(program.run));
    try {
      take_late_reports(checkpoints, [&](const std::string& line) { log.info(line); });
      // A failure here does not change how the run has ended.
    } catch (const Error& error) {
      log.warning(error.what());
    }
  }
  return status;
}

}  // namespace

void run_dry(const Program& program, MakeObserver observer) {
  RunOptions run = program.run;
  run.observers = {std::move(observer)};
  program.work(program.cluster, run);
}

int run_process(const Program& asked) {
  const Log log(log_options(asked.cluster, asked.run));
  if (!asked.old_name_hint.empty() && !asked.cluster.launch.launched)
    log.warning(asked.old_name_hint);
  if (asked.observers.only_plan()) {
    run_dry(asked, asked.observers.observers().front());
    return 0;
  }
  Program program = asked;
  Security& security = program.cluster.links.security;
  security.loaded = secure_job(program.cluster, why_apart(program), program.key_hint);
  if (!program.placed.empty()) log.info(program.placed);
  const bool on_cores = device_kind(program.cluster.device.kind).shares_cores;
  const std::string unused = on_cores ? unused_devices(own_environment) : "";
  if (!unused.empty() && !program.cluster.launch.launched) log.info(unused);
  if (program.cluster.distributed() && security.tls == Tls::kNever &&
      !program.cluster.launch.launched)
    log.warning(fmt::format("--insecure: {}", kGivenUp));
  if (program_run_of(program.run).log_format != "json") return run_with(program, log);
  try {
    return run_with(program, log);
  } catch (const std::exception& exception) {
    // The error becomes a line of the log like any other. In text form, report_errors prints it
    // instead.
    const Failure failure = failure_of(exception);
    log.error(failure.message);
    return exit_status(failure.code);
  }
}

int report_errors(const std::function<int()>& main) {
  try {
    return main();
  } catch (const std::exception& exception) {
    const auto [code, message] = failure_of(exception);
    std::fflush(stdout);
    const char* const kind = code == ErrorCode::kCancelled ? "" : "error: ";
    print_text(stderr, plain_lines(fmt::format("paceline: {}{}\n", kind, message)));
    return exit_status(code);
  }
}

}  // namespace paceline
