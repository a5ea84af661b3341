// Starts every task of a cluster as a process of its own, and sees them through.
#pragma once

#include <string>
#include <vector>

#include "launch/lab/lab_options.h"
#include "launch/ssh/ssh_options.h"
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
  LabOptions lab = {};                 // emulated hosts for the tasks; none: this machine
  bool by_variable = false;            // it may be any command, within which a task is started
  std::vector<std::string> task_flags = {};  // that $PACELINE_TASK has, too
  SshOptions ssh = {};                       // other hosts; only where it is any command
};

/// Where a task runs, and what is there for it.
struct TaskPlace {
  std::string address = {};             // by which the others reach it
  std::vector<std::string> files = {};  // its report, and its timeline where one is asked for
  int cores = 1;                        // which it shares
  int workers = 1;                      // with so many workers
  std::vector<std::string> flags = {};  // that it is given for that place
  TaskStarter* host = nullptr;          // null: this one
};
/// The places of all tasks, in the order in which they are started.
struct Places {
  std::vector<TaskPlace> tasks = {};
  std::string where;   // "this machine"
  std::string shared;  // lines: "  The tasks share 2 cores."

  std::vector<std::string> addresses() const;
};

/// The places of tasks with these addresses that share this machine.
Places places_here(const Cluster& cluster, const std::vector<std::string>& addresses);

/// Starts all tasks, on this machine, on emulated hosts or over ssh, prints what each of them gets,
/// passes on their output, merges their reports into RunOptions::report, and prints at the end
/// which task failed first and why. Returns the exit status.
int launch(const Cluster& cluster, const RunOptions& run, const LaunchProgram& program,
           const TaskGroupOptions& options);

/// The arguments that make the program this task: appended to the user's own, which they override.
/// The cluster's spec has every task's address.
std::vector<std::string> task_arguments(const Cluster& cluster, const TaskId& task,
                                        const TaskPlace& place);
/// The same arguments as $PACELINE_TASK says them, which stands for --launched: an object of JSON
/// with the flags, as in a file of them.
std::string task_variable(const std::vector<std::string>& arguments);
/// task_arguments for the evaluator of a job.
std::vector<std::string> evaluator_arguments();
/// The lines that show the threads and the device of each task.
std::string announcement(const Cluster& cluster, const Places& places);

}  // namespace paceline
