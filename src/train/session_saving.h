// The checkpoints of a session: what they hold, when they are written, and how training goes on
// from one.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "paceline/session.h"
#include "params/interval_timer.h"
#include "run/report/report.h"
#include "train/device_context.h"
#include "train/saver.h"
#include "train/session_job.h"
#include "train/train_loop.h"

namespace paceline {

/// The longest wait for other workers between two checks for an interrupt. The checks cost nothing,
/// and the wait ends soon after Ctrl-C.
constexpr Duration kLookForInterruptEvery = std::chrono::milliseconds(250);

/// For the session's thread, between two steps.
class SessionSaving {
 public:
  struct Parts {
    SessionJob& job;
    std::vector<DeviceContext*> contexts;     // by tower; a single one without towers
    const TrainLoop* loop;                    // null: the session trains nothing and saves nothing
    const std::vector<const Graph*>& graphs;  // those that are trained come first
    std::size_t trained_graphs;               // the number of these
    const Clock& clock;
    const Cluster& cluster;
    const RunOptions& run;
    std::map<std::string, std::string> notes = {};     // in the index of a checkpoint
    DataNames data = {};                               // in the index of a checkpoint
    ModuleNames modules = {};                          // in the index of a checkpoint
    std::function<void(const std::string&)> say = {};  // lines for the user, from any thread
  };
  /// Restores the local variables of the trained graphs from the checkpoint that the job resumes.
  /// Throws kFailedPrecondition when one of them does not fit the checkpoint, and what Saver's
  /// constructor throws.
  explicit SessionSaving(Parts parts);

  /// Lets `tell` add to the position that a checkpoint has of this task.
  void on_save(std::function<void(TaskPosition&)> tell) { tell_position_ = std::move(tell); }
  /// Restores the saved local variables of a graph; of an untrained graph only those that are still
  /// in the model.
  void restore_locals(std::size_t graph);
  /// Do the work of Session::begin_save and Session::save.
  bool begin();
  void save();
  /// Where an evaluation of the present values reads them: in the store, or in a checkpoint.
  struct ToEvaluate {
    // Null if the run keeps no best checkpoint, or the program has set variables since the last
    // step.
    std::shared_ptr<EvaluatedCheckpoint> checkpoint = {};
    std::string path = {};  // the path of the checkpoint; empty: the store has the same values
  };
  /// True when the values that the store has do not change before this task's next step, so that
  /// what is read and what is then saved are the same.
  bool values_stand_still() const;
  /// If the run keeps its best checkpoint, saves the present values, unless they are saved already,
  /// so that the number of an evaluation belongs to a checkpoint. If the values do not stand still,
  /// waits for the end of the save, and the evaluation has to read the checkpoint. If the save
  /// fails, the user is told, and the number belongs to no checkpoint.
  ToEvaluate save_to_evaluate();
  /// True when the best checkpoint is kept, and none was marked.
  bool marked_none() const;
  /// Takes the number of an evaluated checkpoint, by which checkpoints are compared.
  void note_number(EvaluatedCheckpoint& checkpoint, double value);
  /// In one process, waits until the checkpoint that was begun last is written, and marked if it is
  /// the best. In a job of several tasks it returns at once, since the save may wait for a step of
  /// this worker.
  void wait_for_marks();
  /// Notes that the program has set variables: no checkpoint of this step has the present values.
  void values_were_set() { set_at_ = parts_.loop != nullptr ? parts_.loop->last().step : 0; }
  /// Begins a checkpoint when it is time, takes what evaluations beside the run have reported, and
  /// answers tasks that ask for this task's state. To be called after each step.
  void tend();
  /// Once every worker has made its last step, saves on the chief, or in an all-reduce on the
  /// worker on which the workers agree. To be called after training.
  void save_at_end();
  /// Saves for a task that was told to stop. Does not wait for the last steps of the others, except
  /// for half a second in an all-reduce.
  void save_interrupted();
  /// Adds to the report how long checkpoints took, and how long the session waited for them, once a
  /// checkpoint was written.
  void add_to(Report& report) const;

 private:
  void restore_locals(std::size_t graph, std::size_t tower);
  void say_other_towers() const;
  void add_locals(TaskState& state, std::size_t tower) const;
  /// True when this task begins checkpoints now: it is the chief, or has taken over from the chief.
  bool saves() const;
  void make_saver(std::int64_t global_step);
  void save_last(Deadline deadline);
  bool saves_end(Deadline deadline);
  void wait_for_saver();
  void start_save(std::int64_t global_step);
  TaskState own_state();
  void tell_state();

  const Parts parts_;
  IntervalTimer due_, reports_due_;
  std::unique_ptr<Saver> saver_;  // null before this task begins its first checkpoint
  std::int64_t begun_at_ = -1;    // the own step of the last save; −1: there was none
  /// The own step after which the program set variables; −1: there is none.
  std::int64_t set_at_ = -1;
  std::function<void(TaskPosition&)> tell_position_;
  /// The time since which a checkpoint is due that waits for the end of the one under way.
  std::optional<TimePoint> late_since_;
  Duration late_{0}, waited_{0};  // the sums so far
  // True once a line has said that local variables are too large to be saved.
  bool left_out_ = false;
};

}  // namespace paceline
