// One run of `paceline train` as a process of its own.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "run/report/report.h"

namespace paceline::bench {

/// Runs the command `paceline` from this program's folder, with `arguments` ("train", the model,
/// its flags) and a --report; drops its output. Throws kNotFound if the command does not exist, and
/// kFailedPrecondition, which names the command, if the run fails.
Report run_train(std::vector<std::string> arguments);

/// Returns the words that run a program, given by its path and arguments, on the machine where the
/// task belongs.
using TaskPlace = std::function<std::vector<std::string>(std::size_t task,
                                                         const std::vector<std::string>& words)>;

/// Runs the tasks of one cluster until all have ended, each with its own arguments. Each task
/// starts `apart` after the one before it, on this machine or where `place` puts it. Returns their
/// reports as one.
Report run_tasks(const std::vector<std::vector<std::string>>& tasks,
                 std::chrono::milliseconds apart, const TaskPlace& place = {});

/// Returns a value of a section of the report. Throws kFailedPrecondition if it does not exist.
double value_of(const Report& report, const std::string& section, const std::string& key);

/// Returns the largest resident set of any task, in bytes. Throws kFailedPrecondition if some task
/// could not measure its own.
double peak_memory(const Report& report);

/// Returns the steps per second of all workers together. Throws kFailedPrecondition if a worker
/// made no timed step.
double total_steps_per_s(const Report& report);

}  // namespace paceline::bench
