// How the members of an all-reduce share out the records of a data set, without a word more than
// they say anyway: each epoch deals what nobody has used or holds to its members by turns, and a
// record is used when the step that read it is committed. A plain state machine.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "params/protocol/record_set.h"

namespace paceline {

/// As one member sees it. All members of an epoch have the same unused records after each step.
class GroupRecordSharing {
 public:
  /// So many records in a row are dealt to a member.
  static constexpr std::int64_t kUnit = 32;

  // The member's own records.
  /// Returns at most a unit of those that it was dealt, and at most so many, in their order and
  /// below the limit; an empty range: none now.
  RecordRange take(std::int64_t limit, std::int64_t most = kUnit);
  /// True when there will be none below the limit.
  bool over(std::int64_t limit) const;
  /// Returns those that a step reads: what was taken, up to this number of records, and no step
  /// that is committed has read. What is revoked by now is left out.
  std::vector<RecordRange> reads(std::int64_t records) const;
  /// What was taken is not this member's any more, since others went on without it: take() begins
  /// anew once begin() was called.
  bool revoked() const { return revoked_; }
  /// Whoever takes begins to count. What was taken and not used is dealt again in the next epoch.
  void begin();

  // The group.
  /// Nothing is taken before the next epoch is dealt.
  void freeze() { frozen_ = true; }
  /// This member has left its group, which goes on without it: what it has taken is revoked.
  void leave();
  /// The records that were taken and are not used.
  std::vector<RecordRange> held() const { return {held_.begin(), held_.end()}; }
  /// A committed step has read these, which were this member's own or another's.
  void use_own(std::span<const RecordRange> ranges);
  void use(std::span<const RecordRange> ranges);
  /// Before the first epoch: training begins, or goes on from a checkpoint.
  void restore(RecordSet unused) { unused_ = std::move(unused); }
  /// An epoch begins, in which this member is the one at `place` of `held`: what each member holds.
  void deal(RecordSet unused, const std::vector<std::vector<RecordRange>>& held, int place);
  /// The records that no committed step has read.
  const RecordSet& unused() const { return unused_; }

 private:
  void use_up(std::int64_t records);
  std::int64_t offset() const;

  RecordSet unused_, pool_;  // pool_: what was dealt when the epoch began
  std::int64_t place_ = 0, members_ = 1;
  std::int64_t units_ = 0, of_unit_ = 0;  // taken, whole and of the next one
  bool frozen_ = true, revoked_ = false;
  std::deque<RecordRange> held_;  // in the order in which they were taken
  std::int64_t done_ = 0;         // records since begin() that are held no more
};

/// The unused records that each member holds, none twice. In the order of the
/// members.
std::vector<std::vector<RecordRange>> held_by_members(
    const RecordSet& unused, const std::vector<std::vector<RecordRange>>& claims);

}  // namespace paceline
