// Programs that train, once their command line is read: they launch tasks, serve as a ps, or work.
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
  std::string model;                   // for the report of a ps, which knows no model; may be empty
  std::vector<std::string> arguments;  // the command line as given, without the program's name
  /// Trains, as the only process or as a worker.
  std::function<void(const Cluster&, const RunOptions&)> work;
  /// Evaluates the newest whole checkpoint in RunOptions::out, for the task "evaluator"; empty when
  /// the program has no such task.
  EvaluateCheckpoint evaluate = {};
  /// The changes that a ps of the program makes to variables after each read.
  AfterReads after_reads = {};
  std::string placed = {};  // which task a launcher has made of this process; empty: none has
  std::string old_name_hint = {};  // the new names of old ones in the flags
  std::string key_hint = {};       // how its launcher's users give each task the job's key
  LabOptions lab = {};             // emulated hosts for the tasks that it launches
  SshOptions ssh = {};             // other hosts for tasks, if it launches any command
  /// The command that it launches for each task; empty: itself, with its arguments.
  std::vector<std::string> command = {};
  std::vector<std::string> command_flags = {};  // of its tasks
};

/// Works with an observer that lets no session start.
void run_dry(const Program& program, MakeObserver observer);

/// Does this process's work and returns the exit status. Reads the job's key first, and once. A
/// task that fails writes a report with its error. Passes the task's exceptions on.
int run_process(const Program& program);

/// Calls `main`, and turns an exception into a line on stderr and an exit status: 1 failed, 2 wrong
/// usage, 130 interrupted.
int report_errors(const std::function<int()>& main);

}  // namespace paceline
