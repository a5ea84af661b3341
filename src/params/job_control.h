// How a session controls its job, whatever strategy the job has: who has joined, who is done, where
// training begins, and which state the other tasks ask for.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/deadline.h"
#include "paceline/error.h"
#include "params/protocol/end_save.h"
#include "params/shared_record_blocks.h"
#include "params/wire/task_state.h"

namespace paceline {

/// The first own steps of a worker, which are not timed.
constexpr std::int64_t kUntimedSteps = 10;

/// The job's training was over before this worker could join, so the worker has nothing left to do.
class JobIsOver : public Error {
 public:
  explicit JobIsOver(const std::string& message) : Error(ErrorCode::kUnavailable, message) {}
};

/// One thread calls a control, between two steps. A step is a step of the store.
class JobControl {
 public:
  virtual ~JobControl() = default;

  /// True when every live worker of the job has made its untimed first steps.
  virtual bool all_warm() const = 0;
  /// Tells the job that this worker's training is over. The worker may go on untimed until all
  /// workers are done.
  virtual void set_done() = 0;
  /// Waits until the deadline at most. Returns true when every worker of the job is done or gone.
  virtual bool wait_all_done(Deadline deadline) = 0;
  virtual bool all_done() const = 0;
  /// True when some other worker of the job is done.
  virtual bool any_done() const = 0;
  /// Ends the training of all workers of the job: a worker that has heard of it begins no more
  /// steps.
  virtual void end_training() = 0;
  /// True when this or another worker has ended the training of all.
  virtual bool training_ended() const = 0;
  /// Leaves the job in good order; the store must not be used after that.
  virtual void goodbye() = 0;

  /// True when the variables were initialised before this worker joined, because it was restarted
  /// or came late.
  virtual bool was_initialised() const = 0;
  /// Waits until the variables are initialised, which the chief does.
  virtual void wait_initialised() = 0;
  /// Tells the workers their states. The chief calls it when training resumes, before it writes the
  /// variables.
  virtual void restore(std::span<const TaskState> states) = 0;
  /// Returns the number of this worker's next step, once the variables are initialised.
  virtual std::int64_t next_step() const = 0;
  /// Returns this worker's state in the checkpoint from which training resumes. Empty when the
  /// worker begins anew, or when it has trained since that checkpoint and its later state is lost.
  virtual std::optional<TaskState> restored() const = 0;

  /// Adds the state that the store keeps for this worker alone; restored() will return it.
  virtual void add_own_state(TaskState&) const {}
  /// True when another task that saves asks for this worker's state: answer with send_state().
  /// False if no other task ever saves.
  virtual bool state_asked() const = 0;
  /// The records that the job shares out among its workers; null if it shares out none.
  virtual std::shared_ptr<SharedRecordBlocks> records() const { return nullptr; }
  /// True when other tasks may save this worker's state, even after this worker's last step.
  virtual bool others_save() const = 0;
  virtual void send_state(const TaskState& state) = 0;
  /// True when the user has stopped some other task of the job.
  virtual bool stop_asked() const = 0;
  /// True when this task saves checkpoints although it may not be the chief: it is the lowest
  /// worker that trains, and no other task keeps the values.
  virtual bool takes_over_saving() const { return false; }

  /// True when each worker has all values, so that a worker other than the chief may save them.
  virtual bool any_worker_saves() const { return false; }
  /// Only if any_worker_saves(): waits, until the deadline at most, to learn which worker saves the
  /// values at the end of the training. If `patient` is false, workers that still train are
  /// disregarded.
  virtual EndSave wait_end_save(Deadline, bool /*patient*/) { return EndSave::kElsewhere; }
  /// Notes that this task has saved the values at the end of the training.
  virtual void set_saved() {}

  /// Asks all other tasks for their progress; their answers go to JoinOptions::progress. Any thread
  /// may call it until goodbye(). It does not wait.
  virtual void ask_progress() {}
};

}  // namespace paceline
