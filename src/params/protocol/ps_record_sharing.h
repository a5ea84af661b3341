// How ps 0 shares out the records of a data set: a worker that asks is given the next ones, and a
// record is used when the step that read it counts. What a lost worker has not used is given to
// others. Blocks of several steps become smaller near the end, so that nobody waits for a slow
// worker's last block. A plain state machine.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "params/protocol/record_set.h"
#include "params/wire/record_messages.h"

namespace paceline {

/// Calls name a worker's process by its incarnation: those of an older one do nothing.
class PsRecordSharing {
 public:
  struct Answer {
    int worker = 0;
    GivenRecords given;
  };
  using Answers = std::vector<Answer>;

  /// With `waits`, a worker that finds nothing left is answered when others have used what they
  /// have, or are lost, or starve like it; without, it is told at once that all is over.
  PsRecordSharing(int workers, bool waits);

  /// Training goes on from a checkpoint.
  void restore(RecordSet unused);
  /// A worker's process takes the place of an older one, whose records go back.
  void joined(int worker, std::uint64_t incarnation, Answers& answers);
  /// Throws kDataLoss for a wish that makes no sense.
  void ask(int worker, std::uint64_t incarnation, const RecordWish& wish, Answers& answers);
  /// The step reads what the worker was given, up to this number of records since it joined.
  /// Throws kDataLoss when it was given fewer.
  void reads(int worker, std::uint64_t incarnation, std::int64_t step, std::int64_t records,
             Answers& answers);
  /// The step counts: its records are used.
  void counted(int worker, std::uint64_t incarnation, std::int64_t step, Answers& answers);
  /// The step was made in vain: its records go back.
  void in_vain(int worker, std::uint64_t incarnation, std::int64_t step, Answers& answers);
  /// Nobody waits for what the process has not used: its training is over, though it may go on
  /// until that of all is.
  void set_done(int worker, std::uint64_t incarnation, Answers& answers);
  /// The process is lost, or trains no more: what it has not used goes back. If its last step
  /// `may_count`, the records of that go back only when it is known that it does not.
  void left(int worker, std::uint64_t incarnation, bool may_count, Answers& answers);

  /// The records that no step that counts has read.
  RecordSet unused() const;

 private:
  struct Worker {
    std::uint64_t incarnation = 0;
    bool here = false;                       // it has joined, and not left
    std::deque<RecordRange> held;            // in the order in which they were given
    std::int64_t given = 0, done = 0;        // records since it joined; those that are held no more
    std::int64_t step = -1, reads = 0;       // the last step, and where its records end
    std::int64_t of_step = 0, of_block = 0;  // records; 0: not known yet
    bool starves = false, done_training = false;
    std::optional<RecordWish> waiting;  // all that it has asked for and not been answered
  };
  Worker* find(int worker, std::uint64_t incarnation);
  Worker* find_here(int worker, std::uint64_t incarnation);
  void end_step(Worker& worker, std::int64_t step, bool used);
  void give_back(Worker& worker, std::int64_t but_for = 0);
  void answer_waiting(Answers& answers);
  /// Returns true when there is nothing left of the wish.
  bool try_answer(int index, Worker& worker, RecordWish& wish, Answers& answers);
  /// The records that the worker is given now; 0: none before it has read more of what it has.
  std::int64_t piece_of(const Worker& worker, const RecordWish& wish) const;
  std::int64_t left_below(std::int64_t limit) const;
  bool anybody_holds(std::int64_t below) const;

  const bool waits_;
  RecordSet left_;  // neither used nor held
  std::vector<Worker> workers_;
};

}  // namespace paceline
