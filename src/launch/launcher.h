// Starts every task of a cluster on this machine as a process of its own, and sees them through.
#pragma once

#include <string>
#include <vector>

#include "launch/lab/lab_options.h"
#include "launch/task_group.h"
#include "paceline/cluster.h"
#include "paceline/run_options.h"
#include "run/report/report.h"

namespace paceline {

/// The program that is started for each task. Its last arguments say which task it is, or else
/// $PACELINE_TASK does.
struct LaunchProgram {
  std::string path = "/proc/self/exe";
  std::vector<std::string> arguments;  // as the user gave them, without the program's name
  LabOptions lab = {};                 // the hosts of the tasks; none: this machine
  bool by_variable = false;            // it may be any command, within which a task is started
  std::vector<std::string> task_flags = {};  // that $PACELINE_TASK has, too
};

/// Starts all tasks, on this machine or on emulated hosts, prints what each of them gets, passes on
/// their output, merges their reports into RunOptions::report, and prints at the end which task
/// failed first and why. Returns the exit status.
int launch(const Cluster& cluster, const RunOptions& run, const LaunchProgram& program,
           const TaskGroupOptions& options);

/// The arguments that make the program this task: appended to the user's own, which they override.
/// `spec` has every task's address; `cores` are those of the machine.
std::vector<std::string> task_arguments(const Cluster& cluster, const TaskId& task, int cores,
                                        const std::string& report);
/// The same arguments as $PACELINE_TASK says them, which stands for --launched: an object of JSON
/// with the flags, as in a file of them.
std::string task_variable(const std::vector<std::string>& arguments);
/// task_arguments for the evaluator of a job.
std::vector<std::string> evaluator_arguments();
/// The lines that show the cores and the device of each task.
std::string announcement(const Cluster& cluster, int cores);

}  // namespace paceline
