// What a program that trains does, once its command line is read: launch, serve, or work.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "paceline/cluster.h"
#include "paceline/run_options.h"
#include "params/shard/after_read.h"

namespace paceline {

struct Program {
  Cluster cluster;
  RunOptions run;
  std::string model;                   // for the report of a ps, which knows no model; may be empty
  std::vector<std::string> arguments;  // the command line as given, without the program's name
  /// Trains, as the only process or as a worker.
  std::function<void(const Cluster&, const RunOptions&)> work;
  /// What a ps of the program does to variables after each read.
  AfterReads after_reads = {};
};

/// What a session of a dry run throws when it has said what the job would be; no error.
struct DryRunShown {};

/// Does what this process is there for, and returns the exit status. A task that fails leaves a
/// report with its error. Throws what the task threw.
int run_role(const Program& program);

/// Calls `main`; an error becomes a line on stderr and an exit status: 1 failed, 2 usage,
/// 130 interrupted.
int report_errors(const std::function<int()>& main);

}  // namespace paceline
