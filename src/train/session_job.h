// The job as a session sees it: the store that it trains with, and the job's control. The strategy
// of the cluster decides which these are.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "paceline/error.h"
#include "paceline/session.h"
#include "params/joined_strategy.h"
#include "trace/step_account.h"
#include "trace/timeline.h"
#include "train/initial_state.h"

namespace paceline {

class Interrupt;
class Log;

/// The user has interrupted the job while this task waited for others.
class WaitInterrupted : public Error {
 public:
  explicit WaitInterrupted(const std::string& message) : Error(ErrorCode::kCancelled, message) {}
};

class SessionJob {
 public:
  struct Options {
    const Cluster& cluster;
    const RunOptions& run;
    AgreedData data = {};
    // Applies the rules in one process, and copies mapped memory.
    ThreadPool* pool = nullptr;
    StepAccount* account = nullptr;
    Timeline* timeline = nullptr;
    ProgressBoard* progress = nullptr;
  };
  /// Joins. Throws what join_strategy throws; JobIsOver when a launcher tells that the others have
  /// ended, or when no other task answers and the checkpoint to resume has the last step; kUsage
  /// when the task is a ps.
  SessionJob(const Options& options, const std::vector<VariableSpec>& variables);
  /// Says goodbye, unless fail was called.
  ~SessionJob();
  SessionJob(const SessionJob&) = delete;
  SessionJob& operator=(const SessionJob&) = delete;

  /// The chief initialises the variables with the state that `make` returns, unless they are
  /// initialised already. Another worker waits until they are.
  void initialise(const std::function<InitialState()>& make);
  /// Return, after initialise(), the number of this task's next step, and its state when the
  /// checkpoint that it resumes from was written.
  std::int64_t first_step() const { return first_step_; }
  const std::optional<TaskState>& restored() const { return restored_; }
  /// Tells the job that this worker trains no more, and waits until every worker is done or gone.
  /// Returns false at the deadline.
  bool wait_all_done(Deadline deadline);
  /// Makes the session leave the job without a last message, so that the other tasks see that this
  /// one was lost.
  void fail() { failed_ = true; }
  /// Leaves in good order. After that, nothing can be asked of the store.
  void leave();

  SavableStore& store() { return *joined_.store; }
  JobControl& control() { return *joined_.control; }
  /// True when the user has interrupted this process, or a ps of the job.
  bool interrupted() const;
  /// Throws WaitInterrupted when the job is interrupted.
  void check_interrupt() const;

 private:
  /// Throws JobIsOver.
  JoinedStrategy join(JoinOptions how, const std::vector<VariableSpec>& variables,
                      const RunOptions& run) const;
  bool must_make_the_rest(const RunOptions& run) const;
  void say(const std::string& line) const;
  void say_what_is_lost() const;
  void say_if_records_begin_anew(std::span<const TaskState> states) const;

  Cluster cluster_;
  const Interrupt* interrupt_;
  const std::function<bool()> end_asked_;
  const Log* log_;
  const bool quiet_;
  const std::optional<std::int64_t> lost_at_;
  JoinedStrategy joined_;
  std::optional<TaskState> restored_;
  std::int64_t first_step_ = 0;
  bool failed_ = false;
  std::atomic<bool> left_{false};  // true once the task has left: say() prints nothing
};

}  // namespace paceline
