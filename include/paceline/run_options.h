// The options of a run: when it ends, what it writes, and how often.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace paceline {

class SessionObserver;
struct PlannedSession;
struct ProgramRun;

/// An interval: a number of global steps or of seconds. If both are 0, the interval never elapses.
struct Interval {
  std::int64_t steps = 0;  // 0: not by steps
  double seconds = 0;      // 0: not by time

  Interval() = default;
  /// An interval of global steps.
  Interval(std::int64_t every_steps) : steps(every_steps) {}
  /// An interval of time.
  template <typename Rep, typename Period>
  Interval(std::chrono::duration<Rep, Period> every)
      : seconds(std::chrono::duration<double>(every).count()) {}
  /// True when the interval never elapses.
  bool never() const { return steps <= 0 && seconds <= 0; }
  bool operator==(const Interval&) const = default;
};

/// Makes an observer of a planned session (paceline/observer.h), or returns null. Several threads
/// may call the function at once, if a program makes several sessions.
using MakeObserver = std::function<std::unique_ptr<SessionObserver>(const PlannedSession&)>;

/// The details of a step that summaries show, on request, besides its numbers (docs/summaries.md).
struct SummaryOf {
  bool gradients = false;    // the norm and a histogram of the gradient by each variable
  bool activations = false;  // a histogram of the output of each node before the loss
  bool images = false;       // some images of each input that holds images
  /// True when at least one of these is wanted.
  bool any() const { return gradients || activations || images; }
};

/// The number by which a run finds its best checkpoint.
struct KeepBest {
  std::string name;      // as Session::summarise has it: "loss/valid"
  bool largest = false;  // true: the largest number is the best; false: the smallest
};

/// The options of a run, which are flags of every program.
struct RunOptions {
  std::optional<std::int64_t> steps;  // the global step at which the run ends
  /// The length of the run in seconds, from the moment when every worker is warm.
  std::optional<double> seconds;
  std::string report;           // the JSON file of the run's report; empty: none
  Interval summary_every = 20;  // between two summaries for TensorBoard in `out`
  SummaryOf summary_of;         // what the chief's summaries show besides numbers
  /// The file of a timeline for Perfetto of some steps of each task (docs/timeline.md); empty:
  /// none.
  std::string timeline;
  std::int64_t timeline_first = 10;  // the first step of the timeline, counted from 0
  std::int64_t timeline_end = 30;    // the step after the last step of the timeline
  bool quiet = false;                // only warnings and errors are printed
  /// The folder of checkpoints/, summaries/TASK/, timeline/ and report.json. If the name is empty,
  /// none of these is written.
  std::string out;
  bool resume = false;     // true: goes on from the newest whole checkpoint in `out`
  bool overwrite = false;  // true: deletes the checkpoints in `out` first
  /// The checkpoint of another run, if this run only evaluates it: the folder of the other run,
  /// which means its newest whole checkpoint, or RUN:best. Empty: this run is no such evaluation.
  std::string evaluates;
  Interval save_every = std::chrono::minutes(10);  // between two checkpoints in `out`
  int keep = 5;                                    // the number of checkpoints that are kept
  /// If set, the best checkpoint is kept besides the others; to that end, a checkpoint is saved
  /// before each evaluation, which then evaluates it. If not set, no checkpoint is kept as the
  /// best.
  std::optional<KeepBest> keep_best;
  std::string init_from;  // a checkpoint whose values the variables begin with; empty: none
  /// Shell patterns that restrict `init_from` to variables whose names match at least one pattern.
  /// Without patterns, all variables of the model begin with values of `init_from`.
  std::vector<std::string> init_only;
  /// True: in one process and without clipping, the rule is applied to parts of a large weight's
  /// gradient while the rest is computed, so that no memory holds the whole gradient. The result
  /// has the same bits either way.
  bool fused_update = true;
  /// True when the run is only to be predicted: nothing is trained, and the data need not be there.
  bool predicts = false;
  /// Makers of the observers of each session of the run, in the order in which they are called.
  /// run_program adds observers of its own: for the live page, and for the lines that say what is
  /// expected of the job and what held it back. In a dry run or a prediction, these observers print
  /// their results in place of training.
  std::vector<MakeObserver> observers;
  std::uint64_t seed = 1;  // the seed of all random numbers
  /// Returns true once the program wants to end the run as SIGINT does. The function is called
  /// between steps and in waits, on any thread. If it is empty, only a signal ends the run in this
  /// way.
  std::function<bool()> end_asked = {};
  /// The settings of the program that the user gave, by name, as --set takes them. Checkpoints keep
  /// them (SavedModel::settings).
  std::map<std::string, std::string> settings = {};
  /// Other objects that run_program gives to sessions, such as the log. Null in a program with its
  /// own main function.
  std::shared_ptr<const ProgramRun> program = {};
};

}  // namespace paceline
