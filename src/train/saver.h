// Writes checkpoints of a run on a thread of its own, while training goes on.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/best_keeper.h"
#include "checkpoint/checkpoints.h"
#include "params/savable_store.h"

namespace paceline {

/// A checkpoint whose values are evaluated. The saver keeps the checkpoint on the disk as long as
/// someone holds this object and the evaluation's number has not arrived.
struct EvaluatedCheckpoint {
  std::optional<std::int64_t> step = {};  // nothing: it is not written yet, or could not be
  std::optional<double> number = {};      // the number by which it is compared
};

/// The saver of the chief, or of the only process. One thread calls it, between two steps.
class Saver {
 public:
  struct Parts {
    StoreSaving& store;  // must outlive the saver
    // The folder of the checkpoints; the saver makes it.
    std::string folder;
    int keep = 1;
    std::optional<BestBy> keep_best = {};
    std::int64_t global_step = 0;                      // where training begins
    std::map<std::string, std::string> notes = {};     // in the index
    DataNames data = {};                               // in the index
    ModuleNames modules = {};                          // in the index
    std::map<std::string, std::string> settings = {};  // in the index
    std::function<void(const std::string&)> say = {};  // lines for the user, from any thread
    // Lines about failures, from any thread.
    std::function<void(const std::string&)> complain = {};
  };
  /// Throws as StoreSaving::prepare_saving does.
  explicit Saver(Parts parts);
  /// Waits for a save that is under way. If the best checkpoint is kept, deletes older ones once
  /// more.
  ~Saver();
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;

  bool busy() const;
  /// The checkpoints that were written so far. Any thread may ask.
  struct Written {
    int count = 0;
    double seconds = 0, bytes = 0;  // of all of them
  };
  Written written() const;
  /// Begins to save the present values, which are of about step `global_step`: a round that is
  /// under way may not count yet. After a failure, the user is told and training goes on. Not to be
  /// called while busy.
  void start(TaskState own, std::int64_t global_step);
  /// Waits for the save that was started last. Throws the error that it failed with.
  void wait();
  /// Waits for the save that was started last, and returns the global step of its values; −1 when
  /// it failed. Before the first save, returns the step of the checkpoint from which training has
  /// just been resumed; −1 when there is none.
  std::int64_t saved_step();

  /// Returns the checkpoint that start() has begun last; before the first one, the checkpoint from
  /// which training has just been resumed.
  std::shared_ptr<EvaluatedCheckpoint> last_begun() const { return last_begun_; }
  /// Takes the number of an evaluated checkpoint, by which checkpoints are compared. The saver
  /// marks the checkpoint if it is the best, once it is written.
  void note(EvaluatedCheckpoint& checkpoint, double value);
  /// True when the best checkpoint is kept, and none was marked.
  bool marked_none();
  /// Takes the reports of evaluations that run beside this run. Not to be called while busy.
  void take_reports();

 private:
  void finish_last_begun();
  void mark_if_best(std::int64_t step, double value);
  void keep_newest();
  void save(const TaskState& own, std::int64_t global_step);
  void save_or_complain(const TaskState& own, std::int64_t global_step);
  CheckpointIndex write_files(const TaskState& own, const std::string& folder);

  const Parts parts_;
  const Checkpoints checkpoints_;
  std::shared_future<void> last_;
  mutable std::mutex counting_;
  Written written_;               // under counting_
  std::int64_t saved_step_ = -1;  // written by the thread of last_

  std::mutex marking_;  // held while checkpoints are marked or deleted
  /// Guarded by marking_. Empty if no checkpoint is kept as the best.
  std::optional<BestKeeper> keeper_;
  // Guarded by marking_, and so are the checkpoints to which they point.
  std::vector<std::weak_ptr<EvaluatedCheckpoint>> begun_;
  std::shared_ptr<EvaluatedCheckpoint> last_begun_;  // changes while no save is under way
};

}  // namespace paceline
