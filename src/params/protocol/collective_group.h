// The members of an all-reduce and the steps that count, as one worker sees them: a plain state
// machine. The members of an epoch reduce together. The lowest of them commits each step, once all
// have said that their sums are whole; no value changes before that. When a member is lost, retires
// or joins, the lowest living one proposes the next epoch; a member that agrees reduces no more in
// the last one, and says which step its values include. A step that anybody has committed is then
// committed by all, and any other is reduced again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "params/protocol/end_save.h"
#include "params/protocol/outbox.h"
#include "params/protocol/record_set.h"
#include "params/wire/collective_messages.h"

namespace paceline {

/// How the members of an all-reduce share out the records of a data set, without a word more than
/// they say anyway: each epoch deals what nobody has used or holds to its members by turns, and a
/// record is used when the step that read it is committed. A plain state machine, as one member
/// sees it. All members of an epoch have the same unused records after each step.
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

struct CollectiveGroupOptions {
  int worker = 0;
  int workers = 1;
  Duration join_timeout{};
  std::int64_t warm_steps = 10;  // own steps after which a worker counts as warm
  /// True when members need each other while they make their contributions: a step that nobody has
  /// committed when the members change is begun again, and not only reduced again.
  bool repeats_steps = false;
  /// A step is also counted elsewhere, by ps tasks, which count each once: of two groups that lost
  /// each other the one whose steps they count goes on.
  bool counted_by_ps = false;
};

/// Other workers are named by their index, which is also their PeerId in an Outbox. Its driver
/// shows the machine the connections and what they bring, and does what the accessors ask for.
class CollectiveGroup {
 public:
  /// The driver calls tick at least this often. A longer pause tells the machine that its own
  /// process stood still.
  static constexpr Duration kTick = std::chrono::milliseconds(250);

  CollectiveGroup(const CollectiveGroupOptions& options, TimePoint now);

  /// Both workers of a connection know each other. `shares` tells that they share memory.
  void connected(int worker, bool shares, TimePoint now, Outbox& out);
  void disconnected(int worker, const std::string& why, TimePoint now, Outbox& out);
  /// Throws kDataLoss for a message that makes no sense.
  void received(int worker, const ControlMessage& message, TimePoint now, Outbox& out);
  /// Returns when to call again at the latest.
  TimePoint tick(TimePoint now, Outbox& out);

  /// Worker 0 begins the training once all workers are there, or those that came in time. The
  /// others are then sent its values.
  bool founded() const { return founded_; }
  /// The founder has its values, which include so many global steps. Without effect when the group
  /// exists by now.
  void initialise(std::int64_t step, std::span<const std::int64_t> own_steps, TimePoint now,
                  Outbox& out);
  /// True when values that a member sends in this epoch are to be received: here it may not have
  /// begun yet.
  bool wants_values_of(std::uint64_t epoch) const;
  /// Values of an epoch were received whole, which include so many global steps; epoch 0: those of
  /// the end.
  void take_values(std::uint64_t epoch, std::int64_t step, TimePoint now, Outbox& out);
  /// How often this worker was given values.
  std::int64_t takes() const { return takes_; }
  /// The workers that this one is to send its values to, which are those of step() while it lasts.
  /// With counted_by_ps nobody is, before the ps tasks have counted that step as this worker has
  /// it: until then it may find that its values are others than those of the workers that go on.
  std::vector<std::int32_t> lacking() const {
    const bool final = !options_.counted_by_ps || counted_ == step_;
    return final ? lacking_ : std::vector<std::int32_t>();
  }
  void sent_values(int worker);

  /// A member with values may begin its next step. Epoch and step are filled in here.
  bool may_begin() const { return standing_ == Standing::kMember && has_values_ && !begun_; }
  void begin(const CollectiveBegin& own, TimePoint now, Outbox& out);
  /// True when every member has begun the step: its reduction goes on, with these contributors.
  bool started() const;
  /// All sums of the started step are whole here.
  void finish_sums(TimePoint now, Outbox& out);
  /// True when an epoch is proposed: the reduction must rest, and rested() be called then.
  bool must_rest() const { return proposal_ && !rested_; }
  bool proposes() const { return proposal_.has_value(); }
  std::uint64_t proposed_epoch() const { return proposal_ ? proposal_->epoch : 0; }
  void rested(TimePoint now, Outbox& out);

  // Only with counted_by_ps.
  /// A ps that this worker needs for its steps is out of reach, or is back. The others go on
  /// without it, unless they are all cut off.
  void set_cut_off(bool cut_off, TimePoint now, Outbox& out);
  /// The ps tasks have counted so many global steps, each with the contributors that this worker
  /// knows of.
  void set_counted(std::int64_t step, TimePoint now, Outbox& out);

  /// The records that the members share out.
  GroupRecordSharing& records() { return records_; }
  const GroupRecordSharing& records() const { return records_; }

  void set_done(Outbox& out);
  void end_training(Outbox& out);
  /// This worker makes no step any more, and leaves the one that it has begun and not committed.
  void retire(bool wants_values, TimePoint now, Outbox& out);
  /// The retired workers that want the values of the end, and have older ones.
  std::vector<int> waiting_for_values() const;

  Standing standing() const { return standing_; }
  bool has_values() const { return has_values_; }
  /// The global steps that count; with has_values() those that the values include.
  std::int64_t step() const { return step_; }
  std::uint64_t epoch() const { return epoch_; }
  const std::vector<std::int32_t>& members() const { return members_; }
  bool in_place() const { return in_place_; }
  /// The number of steps that this worker has committed since it was made.
  std::int64_t commits() const { return committed_; }
  /// The global steps after the last one that it has committed, in this process; −1: none.
  std::int64_t committed_step() const { return committed_step_; }
  /// The members of the last step that this worker has committed.
  const std::vector<std::int32_t>& contributors() const { return contributors_; }
  /// The worker's word that it has begun the step() of this epoch; null: it has not.
  const CollectiveBegin* begun_by(int worker) const;
  std::int64_t next_own_step(int worker) const { return own_steps_[std::size_t(worker)]; }
  /// True when this worker coordinates: it is the lowest living member.
  bool coordinates() const { return standing_ == Standing::kMember && coordinator() == self(); }
  /// Another worker has told of it.
  Standing standing_of(int worker) const { return peers_[std::size_t(worker)].status.standing; }
  /// True when this worker is the lowest that has contributed to the last step, or has founded the
  /// group before the first one: it saves its values while the training goes on.
  bool saves() const {
    if (committed_ == 0) return founded_;
    return committed_step_ == step_ && contributors_.front() == self();
  }
  /// Of the workers that have committed the last step, the lowest that lives saves the values of
  /// the end; where it is lost before it has told that it did, the next one. `patient`: nobody does
  /// before all workers have retired or gone; otherwise those that still train do not count.
  EndSave end_save(bool patient) const;
  /// This worker has saved the values of the end.
  void set_saved(Outbox& out);
  bool is_connected(int worker) const { return peers_[std::size_t(worker)].connected; }
  /// True when all workers are connected with this one, or some member is; of worker 0: when it
  /// knows whether it begins the training.
  bool met() const;
  bool all_warm() const;
  /// Every other worker is done, or gone.
  bool all_done() const;
  /// Some other worker is done.
  bool any_done() const;
  /// Every other worker is retired, or gone.
  bool all_retired() const;
  bool training_ended() const { return ended_; }
  /// Why this worker cannot go on; empty while it can.
  const std::string& failure() const { return failure_; }
  /// True when it failed because the others had ended the training.
  bool came_too_late() const { return came_too_late_; }
  /// The workers that are not connected.
  std::vector<std::int32_t> missing() const;
  /// "worker:1, worker:3"
  std::string missing_text() const;

 private:
  struct Peer {
    bool connected = false, shares = false;
    GroupStatus status;
    std::optional<CollectiveBegin> begun, begun_before;  // the last, and the one before
    bool whole = false;                                  // its sums of the step that is under way
    std::optional<Agreement> agreement;
    std::string lost;                   // why, since the last formation
    std::optional<std::int64_t> saved;  // it has left after it had saved the end: its `committed`
  };
  int self() const { return options_.worker; }
  Peer& peer(int worker) { return peers_[std::size_t(worker)]; }
  const Peer& peer(int worker) const { return peers_[std::size_t(worker)]; }
  static bool contains(const std::vector<std::int32_t>& workers, int worker) {
    return std::ranges::binary_search(workers, worker);
  }
  static std::uint64_t next_epoch(std::uint64_t after, std::size_t members, int proposer);
  bool is_member(int worker) const;
  bool is_alive(int worker) const;
  bool is_elsewhere(int worker) const;
  bool is_cut_off(int worker) const;
  int coordinator() const;
  bool is_connected_with(int worker, int other) const;
  bool sees(Standing standing) const;

  void check_members(const std::vector<std::int32_t>& members) const;
  void check_formation(const Formation& formation) const;
  void note_time(TimePoint now);
  GroupStatus status() const;
  void tell_status(Outbox& out);
  void send_all(MessageType type, const ControlMessage::Body& body, Outbox& out);
  void turn(TimePoint now, Outbox& out);
  void consider_founding(TimePoint now, Outbox& out);
  void consider_solitude(TimePoint now);
  void consider_partition(TimePoint now);
  void regroup(TimePoint now, Outbox& out);
  std::vector<std::int32_t> wanted_members(TimePoint now);
  void leave_out_the_unconnected(std::vector<std::int32_t>& members, TimePoint now);
  void leave_out_the_cut_off(std::vector<std::int32_t>& members, TimePoint now);
  void add_joiners(std::vector<std::int32_t>& members) const;
  void propose(std::vector<std::int32_t> members, Outbox& out);
  void consider_held(Outbox& out);
  bool must_hold(int proposer) const;
  void accept(const Proposal& proposal, int proposer, Outbox& out);
  void agree(TimePoint now, Outbox& out);
  void take_agreement(int worker, const Agreement& agreement, TimePoint now, Outbox& out);
  void form_when_agreed(TimePoint now, Outbox& out);
  void share_records(Formation& formation) const;
  void hear_form(int worker, const Formation& formation, TimePoint now, Outbox& out);
  void form(const Formation& formation, TimePoint now, Outbox& out);
  void say_who_changed(const std::vector<std::int32_t>& before, Outbox& out);
  void take_status(int worker, const GroupStatus& status, Outbox& out);
  void meet(int worker, Outbox& out);
  void take_begin(int worker, const CollectiveBegin& begin);
  void check_training(int worker);
  void leave_group(Outbox& out);
  void commit_when_whole(Outbox& out);
  void commit();

  const CollectiveGroupOptions options_;
  std::vector<Peer> peers_;  // by worker; that of this one is not used
  Standing standing_ = Standing::kJoining;
  bool founded_ = false, was_member_ = false;
  bool has_values_ = false, in_place_ = false, whole_ = false;
  std::uint64_t epoch_ = 0, highest_ = 0;  // formed; proposed or formed, as far as this one knows
  std::int64_t step_ = -1;
  std::vector<std::int32_t> members_, contributors_, lacking_;
  std::vector<std::int64_t> own_steps_;  // by worker
  std::optional<CollectiveBegin> begun_;
  std::int64_t committed_ = 0;        // steps, in this process
  std::int64_t committed_step_ = -1;  // global steps after the last of them
  std::int64_t takes_ = 0;
  std::optional<std::uint64_t> early_values_;  // whole, of an epoch that has not begun here
  GroupRecordSharing records_;
  std::vector<RecordRange> read_by_others_;  // in the step whose sums are whole here

  std::optional<Proposal> proposal_;
  int proposer_ = -1;
  bool rested_ = false, agreed_ = false;
  bool must_reform_ = false;        // a member's connection has ended since the last formation
  std::map<int, Proposal> held_;    // by proposer, which is not the lowest alive
  std::vector<std::string> lines_;  // to be said once the smaller group has made a step

  std::int64_t counted_ = -1;  // global steps, by the ps tasks, as this worker has them

  bool done_ = false, ended_ = false, wants_values_ = false, saved_ = false;
  bool came_too_late_ = false;
  bool cut_off_ = false;
  bool commits_nothing_ = false;                // it was cut off since the last formation
  TimePoint seen_;                              // the time of the last call
  TimePoint stood_still_until_{};               // when it was noticed that this process had paused
  TimePoint patient_until_{};                   // no epoch is proposed before
  std::optional<TimePoint> unconnected_since_;  // two members are not connected with each other
  std::optional<TimePoint> cut_off_since_;      // some members are cut off, and others are not
  std::optional<int> apart_from_;               // a member that it does not reach, and since when
  TimePoint apart_since_{};
  TimePoint alone_since_;  // no member is connected
  std::string failure_;
};

}  // namespace paceline
