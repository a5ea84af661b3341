// The control of a job by a session, whatever carries the job: who has joined, who is done, where
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

/// The training of the job was over before this worker could join it: nothing is left to do.
class JobIsOver : public Error {
 public:
  explicit JobIsOver(const std::string& message) : Error(ErrorCode::kUnavailable, message) {}
};

/// One thread calls it, between two steps. A step is a step of the store.
class JobControl {
 public:
  virtual ~JobControl() = default;

  /// True when every live worker of the job has made its untimed first steps.
  virtual bool all_warm() const = 0;
  /// Says that this worker's training is over. It may go on untimed until that of all is.
  virtual void set_done() = 0;
  /// Waits at most until the deadline. Returns true when every worker of the job is done or gone.
  virtual bool wait_all_done(Deadline deadline) = 0;
  virtual bool all_done() const = 0;
  /// True when some other worker of the job is done.
  virtual bool any_done() const = 0;
  /// Ends the training of all workers of the job: none begins another step once it has heard of it.
  virtual void end_training() = 0;
  /// True when this or another worker has called it.
  virtual bool training_ended() const = 0;
  /// Leaves the job in good order; the store is of no use after it.
  virtual void goodbye() = 0;

  /// True when the variables were initialised before this worker joined: it was restarted, or late.
  virtual bool was_initialised() const = 0;
  /// Returns when some worker (the chief) has initialised the variables.
  virtual void wait_initialised() = 0;
  /// Says where each worker goes on. The chief calls it when training resumes, before it writes the
  /// variables.
  virtual void restore(std::span<const TaskState> states) = 0;
  /// Returns the number of this worker's next step, once the variables are initialised.
  virtual std::int64_t next_step() const = 0;
  /// Returns this worker's state when the checkpoint that training resumes from was written; empty
  /// when it begins anew, and when its state since is lost.
  virtual std::optional<TaskState> restored() const = 0;

  /// Adds what the store keeps for this worker alone, which restored() gives back.
  virtual void add_own_state(TaskState&) const {}
  /// True when another task saves, so that send_state has to be called with this worker's state.
  /// False where no other task ever saves.
  virtual bool state_asked() const = 0;
  /// The records that the job shares out among its workers; null: it shares out none.
  virtual std::shared_ptr<SharedRecordBlocks> records() const { return nullptr; }
  /// True when other tasks may save this worker's state, also after its last step.
  virtual bool others_save() const = 0;
  virtual void send_state(const TaskState& state) = 0;
  /// True when the user has stopped some other task of the job.
  virtual bool stop_asked() const = 0;
  /// True when this task saves checkpoints, though it may not be the chief: it is the lowest worker
  /// that trains, and nobody else keeps the values.
  virtual bool takes_over_saving() const { return false; }

  /// True where each worker has all values, so that another one than the chief may save them.
  virtual bool any_worker_saves() const { return false; }
  /// There: waits at most until the deadline for it to be known who saves the values of the end.
  /// With `patient` false, workers that still train do not count.
  virtual EndSave wait_end_save(Deadline, bool /*patient*/) { return EndSave::kElsewhere; }
  /// This task has saved the values of the end.
  virtual void set_saved() {}

  /// Asks all other tasks for their progress, which JoinOptions::progress will hear. Any
  /// thread may call it until goodbye(); it waits for nothing.
  virtual void ask_progress() {}
};

}  // namespace paceline
