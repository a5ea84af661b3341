// Marks the best checkpoint of a run, so that it is kept beside the newest ones.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "checkpoint/best_mark.h"
#include "checkpoint/checkpoints.h"

namespace paceline {

/// The one writer of a run's mark: its saver, or whoever holds the lock of the run's folder once
/// the run has ended. A mark is replaced as a whole, before the checkpoint that it named before may
/// be deleted, so that a whole checkpoint is marked at any moment. One thread at a time.
class BestKeeper {
 public:
  using Say = std::function<void(const std::string&)>;
  /// Goes on from the mark that is there. Best values of another number, and of a checkpoint that
  /// is no longer whole, begin anew, and `say` gets a line that tells it. Throws as Disk does, and
  /// kDataLoss when the mark that is there cannot be read.
  BestKeeper(const Checkpoints& checkpoints, const BestBy& by, Say say);

  const BestMark& mark() const { return mark_; }
  /// Marks the checkpoint of that step if its value is better than that of the best so far, and it
  /// is there, whole. Returns true when it is marked now.
  bool note(std::int64_t step, double value);
  /// Takes what evaluations beside the run have reported, and deletes their reports.
  void take_reports();

 private:
  const Checkpoints& checkpoints_;
  const Say say_;
  BestMark mark_;
};

/// Takes the reports that came after a run's end, if the run keeps its best checkpoint. To be
/// called by the holder of the folder's lock.
void take_late_reports(const Checkpoints& checkpoints, const BestKeeper::Say& say);

}  // namespace paceline
