// Marks the best checkpoint of a run, so that it is kept beside the newest ones.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "checkpoint/best_mark.h"
#include "checkpoint/checkpoints.h"

namespace paceline {

/// The only writer of a run's mark: the run's saver, or, after the run, the holder of the lock of
/// its folder. The mark is replaced as a whole, before the checkpoint that it named may be deleted,
/// so that it names a whole checkpoint at any moment. One thread at a time.
class BestKeeper {
 public:
  using Say = std::function<void(const std::string&)>;
  /// Goes on from the existing mark. If that is for another number, or names a checkpoint that is
  /// no longer whole, the search for the best begins anew, and `say` gets a line about it. Throws
  /// as Disk does, and kDataLoss if the existing mark cannot be read.
  BestKeeper(const Checkpoints& checkpoints, const BestBy& by, Say say);

  const BestMark& mark() const { return mark_; }
  /// Marks the checkpoint of that step if its value is better than the best so far and the
  /// checkpoint is whole. Returns true if it is marked now.
  bool note(std::int64_t step, double value);
  /// Reads the reports of evaluations that ran beside the run, marks the best checkpoint, and
  /// deletes the reports.
  void take_reports();

 private:
  const Checkpoints& checkpoints_;
  const Say say_;
  BestMark mark_;
};

/// Reads the reports that arrived after a run's end, if the run keeps its best checkpoint. The
/// caller must hold the folder's lock.
void take_late_reports(const Checkpoints& checkpoints, const BestKeeper::Say& say);

}  // namespace paceline
