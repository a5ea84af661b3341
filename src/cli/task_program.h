// A program that trains, once its command line is read: it launches tasks, serves as a ps, or
// works.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/evaluator_task.h"
#include "cli/observer_options.h"
#include "launch/lab/lab_options.h"
#include "launch/ssh/ssh_options.h"
#include "paceline/cluster.h"
#include "paceline/run_options.h"
#include "params/shard/after_read.h"

namespace paceline {

struct Program {
  Cluster cluster;
  RunOptions run;
  ObserverOptions observers;
  // The model's name for the report of a ps, which knows no model; may be empty.
  std::string model;
  // The command line as given, without the program's name.
  std::vector<std::string> arguments;
  /// Trains, as the only process or as a worker.
  std::function<void(const Cluster&, const RunOptions&)> work;
  /// Evaluates the newest whole checkpoint in RunOptions::out, for the task "evaluator"; empty if
  /// the program has no such task.
  EvaluateCheckpoint evaluate = {};
  /// The changes that a ps of this program makes to variables after each read.
  AfterReads after_reads = {};
  // Says which task a launcher has made of this process; empty if no launcher has.
  std::string placed = {};
  // Tells the new names of flags or values that were given by old names.
  std::string old_name_hint = {};
  // Says how users of its launcher give each task the job's key.
  std::string key_hint = {};
  LabOptions lab = {};  // emulated hosts for the tasks that it launches
  SshOptions ssh = {};  // other hosts for tasks, if it launches a command of any kind
  /// The command that the program launches for each task; if it is empty, the program launches
  /// itself, with its arguments.
  std::vector<std::string> command = {};
  std::vector<std::string> command_flags = {};  // of its tasks
};

/// Runs the program with an observer that lets no session start.
void run_dry(const Program& program, MakeObserver observer);

/// Does the work of this process and returns the exit status. First reads the job's key, which can
/// be read only once. A task that fails writes a report with its error. Passes the task's
/// exceptions on, or with --log-format json logs them.
int run_process(const Program& program);

/// Calls `main`, and turns an exception into a line on stderr and an exit status: 1 for a failure,
/// 2 for wrong usage, 130 for an interrupt.
int report_errors(const std::function<int()>& main);

}  // namespace paceline
