// What a session asks of its job, whatever carries the job: who has joined, who is done, where
// training begins, and what the other tasks want to be told.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/deadline.h"
#include "params/wire/task_state.h"

namespace paceline {

/// The first own steps of a worker, which are not timed.
constexpr std::int64_t kUntimedSteps = 10;

/// One thread calls it, between two steps. A step is a step of the store.
class JobControl {
 public:
  virtual ~JobControl() = default;

  /// Every live worker of the job has made its untimed first steps.
  virtual bool all_warm() const = 0;
  /// This worker's training is over; it may go on untimed until all are.
  virtual void set_done() = 0;
  /// Waits at most until the deadline. Returns true when every worker of the job is done or gone.
  virtual bool wait_all_done(Deadline deadline) = 0;
  virtual bool all_done() const = 0;
  /// Leaves the job in good order; the store is of no use after it.
  virtual void goodbye() = 0;

  /// The variables were initialised before this worker came: it was restarted, or came late.
  virtual bool was_initialised() const = 0;
  /// Returns when some worker (the chief) has initialised the variables.
  virtual void wait_initialised() = 0;
  /// The chief's part when training resumes, before it writes the variables: where each worker is.
  virtual void restore(std::span<const TaskState> states) = 0;
  /// Once the variables are initialised: the number of this worker's next step.
  virtual std::int64_t next_step() const = 0;
  /// Where this worker was when the checkpoint that training resumes from was written; empty when
  /// it begins anew, and when what it did since is lost.
  virtual std::optional<TaskState> restored() const = 0;

  /// Another task saves: send_state has to be called with what is this worker's own. False where
  /// no other task ever saves.
  virtual bool state_asked() const = 0;
  /// Other tasks may save what this worker has, also after its last step.
  virtual bool others_save() const = 0;
  virtual void send_state(const TaskState& state) = 0;
  /// The user has stopped some other task of the job.
  virtual bool stop_asked() const = 0;
};

}  // namespace paceline
