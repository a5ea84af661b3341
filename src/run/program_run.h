// What run_program tells the sessions of a run, beyond the options that a user chooses.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "paceline/run_options.h"

namespace paceline {

class Interrupt;
class Log;
struct Report;

/// RunOptions::program. What it points to must outlive the run.
struct ProgramRun {
  /// Reports SIGINT, SIGTERM and SIGHUP. If it is null, nobody watches for these signals.
  const Interrupt* interrupt = nullptr;
  /// The task's log, for lines about joins and waits. If it is null, these lines are printed.
  const Log* log = nullptr;
  std::string log_level = "info";   // debug, info, warning or error
  std::string log_format = "text";  // or json: one object a line
  std::string resume_command;       // the command that resumes the run; empty: not known
  /// The global step of this task when a ps was lost together with its values; empty if no ps was
  /// lost. The run has since gone on from a checkpoint.
  std::optional<std::int64_t> lost_at;
  /// Receives the last report, to which run_program adds the error of a program that fails. If it
  /// is null, the report is not kept.
  Report* last_report = nullptr;
  /// Receives the seconds that a session has counted towards RunOptions::seconds, so that
  /// run_program goes on counting after a ps was lost. If it is null, the seconds are not kept.
  double* seconds_counted = nullptr;
  /// Called with a message when a session cannot save at its end, or cannot write its report or
  /// timeline; run_program then prints the message and returns 1. If it is empty, the session
  /// prints the message.
  std::function<void(const std::string&)> on_failed_end;
  /// Set in a copy that `paceline predict -- COMMAND` runs beside others: its address, to which an
  /// ExternalStore tells its pace (train/copies_at_once.h). Empty in any other process.
  std::string copy_gate;
  double link_gbps = 0;  // the rate of each emulated host's link; 0: no host is emulated
  /// For the report: the flags of the command line and of its files by name, and the program's
  /// settings with their values.
  std::vector<std::pair<std::string, std::string>> flags;
};

/// Returns the ProgramRun of the run; an empty one if the run has none.
inline const ProgramRun& program_run_of(const RunOptions& run) {
  static const ProgramRun none;
  return run.program == nullptr ? none : *run.program;
}

/// Returns a ProgramRun of these options alone, which the caller may change. Copies of the options
/// keep the earlier one.
inline ProgramRun& own_program_run(RunOptions& run) {
  auto own = std::make_shared<ProgramRun>(program_run_of(run));
  run.program = own;
  return *own;
}

}  // namespace paceline
