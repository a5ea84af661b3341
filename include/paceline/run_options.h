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

/// An interval: a number of global steps or of seconds. If both are 0, it never elapses.
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

/// Makes an observer of a session that is planned (paceline/observer.h), or returns null for none.
/// Several sessions may be made at once.
using MakeObserver = std::function<std::unique_ptr<SessionObserver>(const PlannedSession&)>;

/// The parts of a step that summaries show besides its numbers, on request (docs/summaries.md).
struct SummaryOf {
  bool gradients = false;    // the norm and a histogram of the gradient by each variable
  bool activations = false;  // a histogram of what each node before the loss computes
  bool images = false;       // some images of inputs that are images
  /// True when any of them is wanted.
  bool any() const { return gradients || activations || images; }
};

/// The number by which a run finds its best checkpoint.
struct KeepBest {
  std::string name;      // as Session::summarise has it: "loss/valid"
  bool largest = false;  // true: the largest number is the best; false: the smallest
};

/// The options of a run, which are flags of every program.
struct RunOptions {
  std::optional<std::int64_t> steps;  // the global step at which it ends
  /// The length of the run, counted from when every worker is warm.
  std::optional<double> seconds;
  std::string report;           // the JSON file of the run's report; empty: none
  Interval summary_every = 20;  // between two summaries for TensorBoard in `out`
  SummaryOf summary_of;         // besides numbers, of the chief
  /// The file of a timeline for Perfetto of some steps of each task (docs/timeline.md); empty:
  /// none.
  std::string timeline;
  std::int64_t timeline_first = 10;  // the first step of the timeline, counted from 0
  std::int64_t timeline_end = 30;    // the step after the last of them
  bool quiet = false;                // only warnings and errors are printed
  /// The folder of checkpoints/, summaries/TASK/, timeline/ and report.json. If it is empty, none
  /// of them is written.
  std::string out;
  bool resume = false;     // from the newest whole checkpoint in `out`
  bool overwrite = false;  // deletes the checkpoints in `out`
  /// The checkpoint of another run that this one only evaluates: the folder of that run, which
  /// means its newest whole one, or RUN:best. Empty: this run is not such an evaluation.
  std::string evaluates;
  Interval save_every = std::chrono::minutes(10);  // between two checkpoints in `out`
  int keep = 5;                                    // the number of checkpoints that are kept
  /// If it is set, the best checkpoint is kept beside the others, and each evaluation is of a
  /// checkpoint, which is saved before. If not, no checkpoint is kept as the best.
  std::optional<KeepBest> keep_best;
  std::string init_from;  // a checkpoint whose values the variables begin with; empty: none
  /// Shell patterns that restrict `init_from` to the variables that one of them matches. If there
  /// is none, all variables of the model begin with its values.
  std::vector<std::string> init_only;
  /// True when, in one process and without clipping, the rule is applied to parts of a large
  /// weight's gradient while the rest is computed, so that no memory holds the gradient as a whole.
  /// It changes no bit of the result.
  bool fused_update = true;
  /// True when the run is only to be predicted: nothing is trained, and the data need not be there.
  bool predicts = false;
  /// Makers of the observers of each session of the run, in the order in which they are called.
  /// run_program adds its own: for the live page, and for the lines about what is expected of the
  /// job and what held it back. In a dry run or a prediction, its observers print something in
  /// place of training.
  std::vector<MakeObserver> observers;
  std::uint64_t seed = 1;  // the seed of all random numbers
  /// Returns true once the program wants to end the run as SIGINT does. It is asked between steps
  /// and in waits, on any thread. If it is empty, the program never does.
  std::function<bool()> end_asked = {};
  /// The settings of the program that the user gave, by name, as --set takes them. Checkpoints keep
  /// them (SavedModel::settings).
  std::map<std::string, std::string> settings = {};
  /// More from run_program to its sessions, such as the log. Null in a program with a main
  /// function of its own.
  std::shared_ptr<const ProgramRun> program = {};
};

}  // namespace paceline
