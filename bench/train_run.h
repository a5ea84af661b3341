// One run of `paceline train` as a process of its own.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "run/report/report.h"

namespace paceline::bench {

/// Runs the command `paceline`, which lies in this program's folder, with `arguments` ("train", the
/// model, its flags) and a --report; its output is dropped. Throws kNotFound without the command,
/// and kFailedPrecondition that names the command when the run fails.
Report run_train(std::vector<std::string> arguments);

/// Returns the words that run a program, which is given by its path and arguments, where the task
/// belongs.
using TaskPlace = std::function<std::vector<std::string>(std::size_t task,
                                                         const std::vector<std::string>& words)>;

/// Runs the tasks of one cluster, each with its own arguments and started so long after the one
/// before, to their ends: on this machine, or where `place` puts them. Returns their reports as
/// one.
Report run_tasks(const std::vector<std::vector<std::string>>& tasks,
                 std::chrono::milliseconds apart, const TaskPlace& place = {});

/// Returns a value of a section of the report. Throws kFailedPrecondition when it is not there.
double value_of(const Report& report, const std::string& section, const std::string& key);

/// Returns the largest resident set of the largest task, in bytes. Throws kFailedPrecondition when
/// a task could not measure it.
double peak_memory(const Report& report);

/// Returns the steps per second of all workers. Throws kFailedPrecondition when one made no timed
/// step.
double total_steps_per_s(const Report& report);

}  // namespace paceline::bench
