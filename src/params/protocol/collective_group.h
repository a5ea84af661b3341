// The members of an all-reduce, and which of their steps count, as one worker sees them: a plain
// state machine.
//
// The members of an epoch reduce together. The lowest of them commits each step once all have said
// that their sums are whole. No value changes before that.
//
// When a member is lost, retires or joins, the lowest living member proposes the next epoch. A
// member that agrees stops reducing in the present epoch, and says which step its values include.
// If any member has committed the present step, all commit it then. Otherwise the step is reduced
// again in the new epoch.
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

/// How the members of an all-reduce share out the records of a data set, with no messages but those
/// that the members send anyway. Each epoch deals to its members, in turn, the records that nobody
/// has used or holds. A record is used when the step that read it is committed. This is a plain
/// state machine for one member. After each step, all members of an epoch have the same unused
/// records.
class GroupRecordSharing {
 public:
  /// Each deal gives a member this many records in a row.
  static constexpr std::int64_t kUnit = 32;

  // The member's own records.
  /// Takes records that were dealt to this member, in their order: at most a unit, at most `most`,
  /// all below the limit. Returns an empty range when there are none now.
  RecordRange take(std::int64_t limit, std::int64_t most = kUnit);
  /// True when this member gets no more records below the limit in the present epoch. False while
  /// take() gives nothing because of freeze() or revoked().
  bool over(std::int64_t limit) const;
  /// Returns the records that a step is to read. `records` is how many records all steps since
  /// begin() have read, this step included. Leaves out those that committed steps have read, and
  /// those that are revoked.
  std::vector<RecordRange> reads(std::int64_t records) const;
  /// True when the records that this member has taken no longer belong to it, since the others went
  /// on without it. After begin(), take() gives new records.
  bool revoked() const { return revoked_; }
  /// Call it when a pipeline begins to take records. Records that an earlier pipeline took and no
  /// step used are dealt again in the next epoch.
  void begin();

  // The group.
  /// From now on take() gives nothing, until the next epoch is dealt.
  void freeze() { frozen_ = true; }
  /// Call it when this member has left its group, which goes on without it: the records that it has
  /// taken are revoked.
  void leave();
  /// The records that this member has taken and no committed step has read.
  std::vector<RecordRange> held() const { return {held_.begin(), held_.end()}; }
  /// Notes that a committed step has read these records, which were dealt to this member (use_own)
  /// or to another one (use).
  void use_own(std::span<const RecordRange> ranges);
  void use(std::span<const RecordRange> ranges);
  /// Sets the unused records before the first epoch, when training begins or resumes from a
  /// checkpoint.
  void restore(RecordSet unused) { unused_ = std::move(unused); }
  /// Begins an epoch, which deals the unused records. `held` says which records each member holds;
  /// this member is the one at index `place`.
  void deal(RecordSet unused, const std::vector<std::vector<RecordRange>>& held, int place);
  /// The records that no committed step has read.
  const RecordSet& unused() const { return unused_; }

 private:
  void use_up(std::int64_t records);
  std::int64_t offset() const;

  RecordSet unused_, pool_;  // pool_: the records that were unused when the epoch began
  std::int64_t place_ = 0, members_ = 1;
  /// How many whole units of this epoch this member has taken, and how many records of the next
  /// unit.
  std::int64_t units_ = 0, of_unit_ = 0;
  bool frozen_ = true, revoked_ = false;
  std::deque<RecordRange> held_;  // in the order in which they were taken
  std::int64_t done_ = 0;  // records that this member has taken since begin() and holds no longer
};

/// Returns the unused records that each member holds, in the order of the members, each record
/// once. `claims` is what the members say that they hold.
std::vector<std::vector<RecordRange>> held_by_members(
    const RecordSet& unused, const std::vector<std::vector<RecordRange>>& claims);

struct CollectiveGroupOptions {
  int worker = 0;
  int workers = 1;
  Duration join_timeout{};
  std::int64_t warm_steps = 10;  // own steps after which a worker counts as warm
  /// True when members need each other while they make their contributions. If the members then
  /// change before anybody has committed a step, the step begins again from its values. If false,
  /// only the step's reduction is made again.
  bool repeats_steps = false;
  /// True when ps tasks also count each step, once. If two groups of members lose each other, the
  /// ps tasks count the steps of only one group, and this group goes on.
  bool counted_by_ps = false;
};

/// Other workers are named by their index, which is also their PeerId in an Outbox. The driver
/// tells this state machine of connections and messages, and does what the accessors ask for.
class CollectiveGroup {
 public:
  /// The driver calls tick at least this often. If two calls are 2 s apart or more, the state
  /// machine assumes that its own process stood still.
  static constexpr Duration kTick = std::chrono::milliseconds(250);

  CollectiveGroup(const CollectiveGroupOptions& options, TimePoint now);

  /// Call it when this worker and `worker` have greeted each other over a connection. `shares` is
  /// true when the two share memory.
  void connected(int worker, bool shares, TimePoint now, Outbox& out);
  void disconnected(int worker, const std::string& why, TimePoint now, Outbox& out);
  /// Throws kDataLoss for a message that makes no sense.
  void received(int worker, const ControlMessage& message, TimePoint now, Outbox& out);
  /// Returns the latest time for the next call.
  TimePoint tick(TimePoint now, Outbox& out);

  /// True when this worker, which is worker 0, has founded the group. Worker 0 does so once all
  /// workers are connected, or after join_timeout. The other workers then get its values.
  bool founded() const { return founded_; }
  /// Call it when the founder has its values, which include `step` global steps. Has no effect if
  /// this worker has not founded the group, or has values already.
  void initialise(std::int64_t step, std::span<const std::int64_t> own_steps, TimePoint now,
                  Outbox& out);
  /// True when this worker is to receive the values that a member sends in this epoch, even if this
  /// worker has not heard yet that the epoch has begun.
  bool wants_values_of(std::uint64_t epoch) const;
  /// Call it when the values that a member has sent in the epoch have arrived whole. They include
  /// `step` global steps. Epoch 0 marks the values at the end of the training.
  void take_values(std::uint64_t epoch, std::int64_t step, TimePoint now, Outbox& out);
  /// How often this worker was given values.
  std::int64_t takes() const { return takes_; }
  /// The workers to which this worker must send its values. While it sends them, its values stay
  /// those of step().
  ///
  /// With counted_by_ps the list is empty until the ps tasks have counted that step with the
  /// contributors that this worker knows. Until then, the others may turn out to have gone on with
  /// other values.
  std::vector<std::int32_t> lacking() const {
    const bool final = !options_.counted_by_ps || counted_ == step_;
    return final ? lacking_ : std::vector<std::int32_t>();
  }
  void sent_values(int worker);

  /// True when this worker is a member, has values, and has not begun the next step. begin() fills
  /// in the epoch and the step.
  bool may_begin() const { return standing_ == Standing::kMember && has_values_ && !begun_; }
  void begin(const CollectiveBegin& own, TimePoint now, Outbox& out);
  /// True when every member has begun the step, and no epoch is proposed. The members then reduce
  /// the step.
  bool started() const;
  /// Call it when this worker has all sums of the started step.
  void finish_sums(TimePoint now, Outbox& out);
  /// True when an epoch is proposed. The driver must then stop the reduction, and call rested().
  bool must_rest() const { return proposal_ && !rested_; }
  bool proposes() const { return proposal_.has_value(); }
  std::uint64_t proposed_epoch() const { return proposal_ ? proposal_->epoch : 0; }
  void rested(TimePoint now, Outbox& out);

  // Only with counted_by_ps.
  /// Says whether this worker cannot reach a ps that it needs for its steps. If it cannot, the
  /// other members go on without it, unless all of them are cut off, too.
  void set_cut_off(bool cut_off, TimePoint now, Outbox& out);
  /// Call it when the ps tasks have counted `step` global steps, each with the contributors that
  /// this worker knows.
  void set_counted(std::int64_t step, TimePoint now, Outbox& out);

  /// The records that the members share out.
  GroupRecordSharing& records() { return records_; }
  const GroupRecordSharing& records() const { return records_; }

  void set_done(Outbox& out);
  void end_training(Outbox& out);
  /// Call it when this worker makes no more steps. If it has begun a step that is not committed, it
  /// abandons that step.
  void retire(bool wants_values, TimePoint now, Outbox& out);
  /// The connected workers that must get the values at the end of the training, since they have
  /// only older values: workers that want to join, and retired workers that want the values. Empty
  /// if this worker has no values.
  std::vector<int> waiting_for_values() const;

  Standing standing() const { return standing_; }
  bool has_values() const { return has_values_; }
  /// The number of global steps that count. If has_values() is true, the values include exactly
  /// these steps.
  std::int64_t step() const { return step_; }
  std::uint64_t epoch() const { return epoch_; }
  const std::vector<std::int32_t>& members() const { return members_; }
  bool in_place() const { return in_place_; }
  /// The number of steps that this worker has committed since it was made.
  std::int64_t commits() const { return committed_; }
  /// The number of global steps up to the last step that this worker has committed, that step
  /// included; −1: it has committed none.
  std::int64_t committed_step() const { return committed_step_; }
  /// The members of the last step that this worker has committed.
  const std::vector<std::int32_t>& contributors() const { return contributors_; }
  /// The message by which `worker` began step() of this epoch; null: it has not begun that step.
  const CollectiveBegin* begun_by(int worker) const;
  std::int64_t next_own_step(int worker) const { return own_steps_[std::size_t(worker)]; }
  /// True when this worker coordinates: it is the lowest living member that is not cut off from the
  /// ps tasks. If all are cut off, the lowest living member coordinates.
  bool coordinates() const { return standing_ == Standing::kMember && coordinator() == self(); }
  /// The standing that the other worker has told.
  Standing standing_of(int worker) const { return peers_[std::size_t(worker)].status.standing; }
  /// True when this worker saves its values while the training goes on: it is the lowest
  /// contributor to the last step or, before the first step, the founder.
  bool saves() const {
    if (committed_ == 0) return founded_;
    return committed_step_ == step_ && contributors_.front() == self();
  }
  /// Says whether this worker saves the values at the end of the training. The lowest living worker
  /// of those that have committed the last step does. If that worker is lost before it says that it
  /// has saved, the next one saves. If `patient`, nobody saves before all workers have retired or
  /// gone; otherwise workers that still train are disregarded.
  EndSave end_save(bool patient) const;
  /// Call it when this worker has saved the values at the end of the training.
  void set_saved(Outbox& out);
  bool is_connected(int worker) const { return peers_[std::size_t(worker)].connected; }
  /// True when all workers are connected with this worker, or when some connected worker is a
  /// member. For worker 0: true when it knows whether it begins the training.
  bool met() const;
  bool all_warm() const;
  /// True when every other worker is done, has retired or is not connected.
  bool all_done() const;
  /// True when some other worker is done or has retired.
  bool any_done() const;
  /// True when every other worker has retired or is not connected.
  bool all_retired() const;
  bool training_ended() const { return ended_; }
  /// Why this worker cannot continue; empty while it can.
  const std::string& failure() const { return failure_; }
  /// True when this worker failed because the others had ended the training.
  bool came_too_late() const { return came_too_late_; }
  /// The workers that are not connected.
  std::vector<std::int32_t> missing() const;
  /// "worker:1, worker:3"
  std::string missing_text() const;

 private:
  struct Peer {
    bool connected = false, shares = false;
    GroupStatus status;
    /// The worker's last two begin messages.
    std::optional<CollectiveBegin> begun, begun_before;
    bool whole = false;  // the worker has all sums of the step under way
    std::optional<Agreement> agreement;
    // Why the last connection ended; empty if the worker is connected, or had retired.
    std::string lost;
    /// Set if the worker has gone after it had saved at the end: `committed` of its last status.
    std::optional<std::int64_t> saved;
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
  std::vector<Peer> peers_;  // by worker; of this worker's own, only the agreement is used
  Standing standing_ = Standing::kJoining;
  bool founded_ = false, was_member_ = false;
  bool has_values_ = false, in_place_ = false, whole_ = false;
  /// The present epoch, and the highest epoch that this worker knows to be proposed or formed.
  std::uint64_t epoch_ = 0, highest_ = 0;
  std::int64_t step_ = -1;
  std::vector<std::int32_t> members_, contributors_, lacking_;
  std::vector<std::int64_t> own_steps_;  // by worker
  std::optional<CollectiveBegin> begun_;
  std::int64_t committed_ = 0;        // steps, in this process
  std::int64_t committed_step_ = -1;  // global steps after the last committed step
  std::int64_t takes_ = 0;
  /// The epoch whose values have arrived whole, if that epoch has not begun here yet.
  std::optional<std::uint64_t> early_values_;
  GroupRecordSharing records_;
  /// Records that other members read in the step of which this worker has all sums.
  std::vector<RecordRange> read_by_others_;

  std::optional<Proposal> proposal_;
  int proposer_ = -1;
  bool rested_ = false, agreed_ = false;
  bool must_reform_ = false;  // an epoch must be formed even if the members stay the same
  // By proposer: the proposals that wait because a lower member lives.
  std::map<int, Proposal> held_;
  std::vector<std::string> lines_;  // messages to show once the smaller group has made a step

  /// The number of steps that the ps tasks have counted with the contributors that this worker
  /// knows.
  std::int64_t counted_ = -1;

  bool done_ = false, ended_ = false, wants_values_ = false, saved_ = false;
  bool came_too_late_ = false;
  bool cut_off_ = false;
  /// This worker was cut off from the ps tasks since the last formation, so it must commit nothing.
  bool commits_nothing_ = false;
  TimePoint seen_;                              // the time of the last call
  TimePoint stood_still_until_{};               // the end of this process's last long pause
  TimePoint patient_until_{};                   // no epoch is proposed before this time
  std::optional<TimePoint> unconnected_since_;  // set while two members are unconnected
  std::optional<TimePoint> cut_off_since_;      // set while some members are cut off, others not
  /// A member that this worker does not reach. `apart_since_`: the time at which this began.
  std::optional<int> apart_from_;
  TimePoint apart_since_{};
  TimePoint alone_since_;  // the time since which no member is connected
  std::string failure_;
};

}  // namespace paceline
