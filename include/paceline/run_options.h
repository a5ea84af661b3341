// How long a run goes on, what it leaves behind, and how often.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace paceline {

class Interrupt;
class Log;
struct Report;

/// How often something is done: after so many global steps, or after so many seconds. Neither:
/// never.
struct Interval {
  std::int64_t steps = 0;  // 0: not by steps
  double seconds = 0;      // 0: not by time

  Interval() = default;
  /// Every so many global steps.
  Interval(std::int64_t every_steps) : steps(every_steps) {}
  /// Every so much time.
  template <typename Rep, typename Period>
  Interval(std::chrono::duration<Rep, Period> every)
      : seconds(std::chrono::duration<double>(every).count()) {}
  /// Is it never done?
  bool never() const { return steps <= 0 && seconds <= 0; }
  bool operator==(const Interval&) const = default;
};

/// How long a run goes on and what it leaves behind; flags of every program.
struct RunOptions {
  std::optional<std::int64_t> steps;  // global steps, absolute
  std::optional<double> seconds;      // of training, counted from when every worker is warm
  std::string report;                 // JSON file; empty: none
  Interval summary_every = 20;        // event files for TensorBoard in `out`
  /// A trace for Perfetto of what each task did in some of its own steps (docs/timeline.md); empty:
  /// none.
  std::string timeline;
  std::int64_t timeline_first = 10;  // those steps, counted from 0; end excluded
  std::int64_t timeline_end = 30;    // those steps, counted from 0; end excluded
  bool quiet = false;                // errors only
  /// The folder of what the run leaves: checkpoints/, summaries/TASK/, timeline/, report.json.
  /// Empty: nothing is left.
  std::string out;
  bool resume = false;                             // from the newest whole checkpoint in `out`
  bool overwrite = false;                          // checkpoints in `out` are deleted
  Interval save_every = std::chrono::minutes(10);  // a checkpoint in `out`; also at the end
  int keep = 5;                                    // so many checkpoints, the newest
  std::string init_from;  // a checkpoint whose values the variables begin with; empty: none
  /// Of it only the variables that one of these shell patterns matches; empty: all of the model's.
  std::vector<std::string> init_only;
  std::string resume_command;  // what to type to go on; empty: not known
  /// Alone and without clipping: the rule is applied to parts of a large weight's gradient while
  /// the rest is computed, and no memory holds the gradient as a whole. Changes no bit.
  bool fused_update = true;
  /// A session prints what the job would be, from the flags and its graph alone, and ends the
  /// program (run_program then returns 0).
  bool dry_run = false;
  std::uint64_t seed = 1;  // where random numbers start
  /// Tells of SIGINT and SIGTERM; borrowed, outlives the run. Null: nobody watches.
  const Interrupt* interrupt = nullptr;
  /// Told what the end of a session could not do: save, or write its report or timeline;
  /// run_program then prints it and returns 1. Null: it is only printed.
  std::function<void(const std::string&)> on_failed_end;
  /// Where what was reported last is kept for run_program, which adds the error of a program that
  /// fails. Borrowed, outlives the run. Null: it is not kept.
  Report* last_report = nullptr;
  std::string log_level = "info";   // debug, info, warning or error
  std::string log_format = "text";  // or json: an object a line
  /// Where lines about the task go: who joined, what it waits for. Borrowed, outlives the run.
  /// Null: they are printed.
  const Log* log = nullptr;
};

}  // namespace paceline
