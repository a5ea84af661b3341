// How ps 0 shares out the records of a data set. A worker that asks gets the next records. A record
// is used when the step that read it counts. Records that a lost worker has not used go to others.
// Blocks of several steps become smaller near the end, so that nobody waits for a slow worker's
// last block. A plain state machine.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "params/protocol/record_set.h"
#include "params/wire/record_messages.h"

namespace paceline {

/// Calls name a worker's process by its incarnation. Calls about an older process do nothing.
class PsRecordSharing {
 public:
  struct Answer {
    int worker = 0;
    GivenRecords given;
  };
  using Answers = std::vector<Answer>;

  /// `waits` says what happens to a worker that asks when no records are left. True: the worker is
  /// answered once the others have used their records, are lost, or have none left, either. False:
  /// the worker is told at once that there are no more.
  PsRecordSharing(int workers, bool waits);

  /// Call it when training resumes from a checkpoint, in which no step had used the records
  /// `unused`.
  void restore(RecordSet unused);
  /// A worker's process takes the place of an older process, whose unused records become available
  /// to all.
  void joined(int worker, std::uint64_t incarnation, Answers& answers);
  /// Throws kDataLoss for a wish that makes no sense.
  void ask(int worker, std::uint64_t incarnation, const RecordWish& wish, Answers& answers);
  /// `records` counts the records that the worker has read since it joined, including those of this
  /// step. Throws kDataLoss when `records` is more than the worker was given.
  void reads(int worker, std::uint64_t incarnation, std::int64_t step, std::int64_t records,
             Answers& answers);
  /// The step counts: its records are used.
  void counted(int worker, std::uint64_t incarnation, std::int64_t step, Answers& answers);
  /// The step was made in vain: its records become available to all again.
  void in_vain(int worker, std::uint64_t incarnation, std::int64_t step, Answers& answers);
  /// The worker's training is over, although it may make untimed steps until all are done. No other
  /// worker waits for the records that this worker's process has not used.
  void set_done(int worker, std::uint64_t incarnation, Answers& answers);
  /// The process is lost, or trains no more, so its unused records become available to all. If its
  /// last step `may_count`, the records of that step do so only once it is certain that the step
  /// does not count.
  void left(int worker, std::uint64_t incarnation, bool may_count, Answers& answers);

  /// The records that no counted step has read.
  RecordSet unused() const;

 private:
  struct Worker {
    std::uint64_t incarnation = 0;
    bool here = false;  // it has joined, and not left
    /// Records that were given to the worker and are not used, in the order in which they were
    /// given.
    std::deque<RecordRange> held;
    /// Records that were given since the worker joined, and how many of them it no longer holds.
    std::int64_t given = 0, done = 0;
    /// The last step, and how many records the worker has read up to its end.
    std::int64_t step = -1, reads = 0;
    /// How many records one step of the worker reads, and how many one block has; 0: not known yet.
    std::int64_t of_step = 0, of_block = 0;
    bool starves = false, done_training = false;
    std::optional<RecordWish> waiting;  // the part of its requests that is not answered
  };
  Worker* find(int worker, std::uint64_t incarnation);
  Worker* find_here(int worker, std::uint64_t incarnation);
  void end_step(Worker& worker, std::int64_t step, bool used);
  void give_back(Worker& worker, std::int64_t but_for = 0);
  void answer_waiting(Answers& answers);
  /// Returns true when the wish is answered completely.
  bool try_answer(int index, Worker& worker, RecordWish& wish, Answers& answers);
  /// Returns how many records the worker is given now; 0: none before it has read more of the
  /// records that it has.
  std::int64_t piece_of(const Worker& worker, const RecordWish& wish) const;
  std::int64_t left_below(std::int64_t limit) const;
  bool anybody_holds(std::int64_t below) const;

  const bool waits_;
  RecordSet left_;  // neither used nor held
  std::vector<Worker> workers_;
};

}  // namespace paceline
