// Evaluates the checkpoints of a run: `paceline eval`, and the task "evaluator" of a job.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "base/clock.h"
#include "checkpoint/checkpoints.h"
#include "paceline/program.h"
#include "paceline/run_options.h"
#include "run/interrupt.h"
#include "run/log.h"
#include "summary/event_writer.h"

namespace paceline {

/// Evaluates a whole checkpoint in RunOptions::out.
using EvaluateCheckpoint = std::function<Evaluation(const RunOptions&)>;

/// Evaluates the checkpoints in a run's folder. For one thread.
class CheckpointEvaluations {
 public:
  /// Writes summaries to OUT/summaries/evaluator; `log` gets a line if they cannot be written. If
  /// the run keeps its best checkpoint, reports each evaluation to the run. If the run has already
  /// ended, marks the best checkpoint itself.
  CheckpointEvaluations(const RunOptions& run, EvaluateCheckpoint evaluate, const Log& log);

  /// Evaluates the newest whole checkpoint unless that was done before, and prints loss, precision
  /// and best precision. Returns false if there is no new checkpoint.
  bool evaluate_newest();
  /// Prints "precision 0.7312, best 0.7402 at step 6000". Throws kNotFound if there was no
  /// checkpoint.
  void print_last_line() const;

 private:
  void summarise();
  void report();
  void say_passed_over(const FoundCheckpoint& torn);

  const std::string out_;
  const Checkpoints checkpoints_;
  const EvaluateCheckpoint evaluate_;
  const Log& log_;
  RunOptions run_;
  Evaluation last_, best_;
  std::int64_t last_step_ = -1;
  // The step of the checkpoint that was the newest one at the last evaluation.
  std::int64_t looked_at_ = -1;
  std::set<std::int64_t> passed_over_;  // steps of torn checkpoints that a warning has named
  std::optional<EventWriter> summaries_;
  bool no_summaries_ = false, no_reports_ = false;
};

/// The time for which an evaluator follows a run.
struct FollowOptions {
  /// The time within which the run may begin.
  Duration begins_within{};
  /// A descriptor that becomes readable once the run has ended. If it is negative, the lock of the
  /// run's folder shows whether the run goes on.
  int ended = -1;
};

/// Evaluates each new checkpoint until the run has ended. Throws kCancelled if it is interrupted.
void follow_run(CheckpointEvaluations& evaluations, const std::string& out,
                const Interrupt& interrupt, const FollowOptions& options);

/// Runs the task "evaluator": follows the run in RunOptions::out and prints the last line. A
/// launcher ends the task's standard input when the job has ended. The evaluator has the lowest
/// priority on its host. Throws kUsage without --out.
void run_evaluator(const Cluster& cluster, const RunOptions& run, EvaluateCheckpoint evaluate,
                   const Log& log);

}  // namespace paceline
