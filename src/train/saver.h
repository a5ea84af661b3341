// Writes checkpoints of a run on a thread of its own, while training goes on.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <string>

#include "checkpoint/checkpoints.h"
#include "params/savable_store.h"

namespace paceline {

/// The saver of the chief, or of the only process. One thread calls it, between two steps.
class Saver {
 public:
  struct Parts {
    StoreSaving& store;  // must outlive the saver
    std::string folder;  // of checkpoints; made
    int keep = 1;
    std::int64_t global_step = 0;                           // where training begins
    std::map<std::string, std::string> notes = {};          // in the index
    DataNames data = {};                                    // in the index
    std::function<void(const std::string&)> say = {};       // lines for the user, from any thread
    std::function<void(const std::string&)> complain = {};  // the same, that something went wrong
  };
  /// Throws as StoreSaving::prepare_saving does.
  explicit Saver(Parts parts);
  /// Waits for a save that is under way.
  ~Saver();
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;

  bool busy() const;
  /// The checkpoints that were written so far. Any thread.
  struct Written {
    int count = 0;
    double seconds = 0, bytes = 0;  // of all of them
  };
  Written written() const;
  /// Begins to save the present values, of about that step: a round that is under way may not count
  /// yet. After a failure, the user is told and training goes on. Not to be called while busy.
  void start(TaskState own, std::int64_t global_step);
  /// Waits for the save that was started last. Throws the error that it failed with.
  void wait();
  /// Waits for the save that was started last, and returns the global step of its values; −1 when
  /// it failed.
  /// Before the first save, returns the step of the checkpoint that training has just been resumed
  /// from; −1 when there is none.
  std::int64_t saved_step();

 private:
  void save(const TaskState& own, std::int64_t global_step);
  void save_or_complain(const TaskState& own, std::int64_t global_step);
  CheckpointIndex write_files(const TaskState& own, const std::string& folder);

  const Parts parts_;
  const Checkpoints checkpoints_;
  std::shared_future<void> last_;
  mutable std::mutex counting_;
  Written written_;               // under counting_
  std::int64_t saved_step_ = -1;  // written by the thread of last_
};

}  // namespace paceline
