// A job as one ps sees it: who takes part, what the tasks agreed on, what each is told, and when
// the job ends. A plain state machine: events and their times go in, an outbox comes out. It has no
// thread, socket, clock or memory of values. docs/wire.md has the messages.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "params/protocol/aggregation.h"
#include "params/protocol/coordinator_search.h"
#include "params/protocol/membership.h"
#include "params/protocol/outbox.h"
#include "params/protocol/ps_record_sharing.h"
#include "params/protocol/rounds.h"

namespace paceline {

struct PsTaskOptions {
  int ps = 0;       // the index of this task
  int workers = 0;  // the number of workers in the cluster spec
  std::string cluster_id;
  /// Serves the job of the worker that comes first, and later another job (PsOptions::any_job).
  bool any_job = false;
  std::uint64_t incarnation = 0;  // identifies this process, and the values that it keeps
  std::uint64_t first_epoch = 1;  // the first epoch of the membership
  Duration join_timeout{};
  /// The time within which a worker whose connection was cut may come back; 0: it may not come
  /// back.
  Duration reconnect_timeout{};
  std::int64_t last_step = 0;   // 0: unknown; the chief may declare it
  std::int64_t warm_steps = 0;  // own steps after which a worker counts as warm
};

/// Calls about an unknown peer do nothing, or throw kFailedPrecondition if they must return an
/// answer.
class PsTask {
 public:
  /// Makes the memory of the variables that the chief has declared. Returns the variables that this
  /// ps changes by itself after each read. May throw: the ps then refuses the chief.
  using TakeVariables = std::function<std::vector<std::int32_t>(const Declare&)>;
  PsTask(PsTaskOptions options, TakeVariables take_variables, TimePoint now);

  // Events of connections. PeerIds ascend.
  void accepted(PeerId peer, TimePoint now, Outbox& out);
  /// Throws for a message that the peer must not send. The driver then calls refuse() with the
  /// error's text.
  void received(PeerId peer, const ControlMessage& message, TimePoint now, Outbox& out);
  void refuse(PeerId peer, const std::string& why, Outbox& out);
  /// Ends the training of all workers.
  void refuse_workers(const std::string& why, Outbox& out);
  /// Call it when nothing more can be sent to the peer: its connection is then closed.
  void give_up(PeerId peer, const std::string& why, Outbox& out);
  /// The end of a peer's connection.
  struct Ended {
    std::string why;  // for the user
    /// How many numbered messages of the peer were handled, on all connections.
    std::uint64_t handled = 0;
    /// The peer sent a message that it must not send, so it may not come back.
    bool broken = false;
  };
  /// The connection has ended. Returns true when the peer may come back on another connection.
  bool closed(PeerId peer, const Ended& ended, TimePoint now, Outbox& out);

  // A step, from its first frame to its last. begin_step throws kFailedPrecondition for a peer that
  // may not train yet.
  /// `begin` is the step's first frame. Rounds use the frame's round, examples and clip norm.
  Fate begin_step(PeerId peer, std::int64_t step, bool reads_now = false,
                  const StepBegin& begin = {});
  /// Counts a global step if the fate was kApply. If the fate was kKeep, the contribution is now
  /// whole here, and a later Outbox::Decide says whether it is applied. Otherwise kStepDone is the
  /// answer, if this ps counts steps or the job has rounds. A skipped contribution has NaN, and its
  /// round closes without it. Returns the global step.
  std::int64_t end_step(PeerId peer, std::int64_t step, Fate fate, TimePoint now, Outbox& out,
                        bool skipped = false);

  // Rounds.
  /// Takes the sum of the squares of this shard's part of a round's mean. Outbox::Clip brings the
  /// scale, now or later.
  void squares(const RoundSquares& squares, Outbox& out);
  bool in_rounds() const {
    return declared_ && declared_->aggregation.kind == AggregationKind::kRounds;
  }
  // The connection to ps 0, which is named Outbox::kCoordinator.
  const std::string& coordinator_address() const { return declared_->aggregation.coordinator; }
  void coordinator_connected(Outbox& out);
  void coordinator_failed(const std::string& why, TimePoint now);
  /// Throws kDataLoss for a message that ps 0 must not send.
  void from_coordinator(const ControlMessage& message, TimePoint now, Outbox& out);
  void coordinator_closed(std::uint64_t handled, TimePoint now);

  /// Does what is due by now. Returns the latest time for the next call.
  TimePoint tick(TimePoint now, Outbox& out);
  Membership::End end(TimePoint now) const;
  /// Call it when this ps was told to stop. Asks the workers to leave. Returns false when it has no
  /// workers.
  bool ask_to_leave(Outbox& out);

  /// Throws kFailedPrecondition unless the peer has agreed on the variables and, if `initialised`
  /// is true, they are initialised.
  void check_agreed(PeerId peer, bool initialised) const;
  /// The peer's worker index; −1: the peer has not said hello, was refused, or is another ps.
  int worker(PeerId peer) const;
  /// The peer's index as a ps; −1: the peer is no ps, or was refused.
  int shard(PeerId peer) const;
  bool counts_steps() const { return options_.ps == 0; }
  std::int64_t global_step() const { return membership_.global_step(); }
  bool initialised() const { return initialised_; }
  /// True when another job has taken the place of this job (any_job).
  bool given_up() const { return given_up_; }
  /// True when the chief has asked this ps to forget everything, since another ps has lost its
  /// values, or the state that belongs to the values is lost. This object is then no longer used: a
  /// PsTask with another incarnation takes its place.
  bool begins_again() const { return begins_again_; }
  std::uint64_t epoch() const { return membership_.epoch(); }
  bool all_gone() const { return membership_.connected() == 0; }
  std::string members() const { return membership_.text(); }
  /// The sharing of the job's records; null if no records are shared out.
  const PsRecordSharing* shares() const { return shares_.get(); }
  /// The cluster id of this ps's job; empty while the ps waits for its first job (any_job).
  std::string id() const { return waits_for_job_ ? std::string() : options_.cluster_id; }
  std::string name() const;
  int ps() const { return options_.ps; }
  int workers() const { return options_.workers; }

 private:
  /// When a connection is closed, messages that were sent on it have this long to arrive.
  static constexpr Duration kCloseTimeout = std::chrono::seconds(2);
  struct Peer {
    TimePoint accepted{};
    int worker = -1;  // −1: the peer has not said hello, or is another ps
    int shard = -1;   // its index, if it is a ps
    std::uint64_t incarnation = 0;
    bool agreed = false;  // it has agreed on the variables
    bool trains = false;  // it knows that the variables are initialised
    bool refused = false, left = false;
    bool replaced = false;  // a newer incarnation has taken its place
    bool trained = false;   // the peer is cut off, and will train once it is back
    // The time at which the connection ended, if the peer may come back.
    std::optional<TimePoint> cut_at;
    std::uint64_t handled = 0;       // how many messages of the peer were handled until cut_at
    std::vector<std::string> flags;  // the flags on which workers must agree
    // The peer's list of variables, until the chief's list arrives.
    std::optional<Declare> declared;
    std::uint64_t state_asked = 0;  // the save that asks for the peer's state; 0: none
    bool progress_asked = false;    // the peer was asked for its progress, and has not answered
    JobState told;                  // the last state that it was told
    std::optional<RoundContribution> given;    // the peer's contribution to an undecided round
    bool given_whole = false;                  // all of the contribution is here
    std::optional<std::int64_t> awaits_round;  // the round of whose opening the peer must be told
    bool unidentified() const { return worker < 0 && shard < 0; }
    bool takes_part() const { return agreed && !left && !replaced; }
    bool is_cut_off() const { return cut_at.has_value(); }
  };
  struct KnownState {
    std::int64_t step = 0;
    StateBytes bytes;  // as the worker sent them; null: not known
  };

  Peer& peer_of(PeerId id);
  // Joining.
  void on_hello(PeerId id, Peer& peer, const Hello& hello, TimePoint now, Outbox& out);
  std::string why_not(const Hello& hello) const;
  std::string join(const Hello& hello, TimePoint now, Outbox& out);
  void displace(const Hello& hello, Outbox& out);
  std::string displaced_text(int worker) const;
  bool comes_back(PeerId id, const Hello& hello, TimePoint now, Outbox& out);
  void take_back(PeerId id, PeerId by, const Hello& hello, TimePoint now, Outbox& out);
  void welcome(PeerId id, const Peer& peer, const Hello& hello, Outbox& out);
  void begin_to_train(PeerId id, Peer& peer, Outbox& out);
  void forget(PeerId id, Outbox& out);
  std::string patience_text(bool may_come_back) const;
  /// Gives up the workers that have been cut off for too long. Returns the time at which the next
  /// worker would be given up.
  TimePoint give_up_lost(TimePoint now, Outbox& out);
  bool serves_another(const Hello& hello) const;
  void adopt(const Hello& hello, TimePoint now, Outbox& out);
  void turn_away(PeerId id, Peer& peer, std::string why, Outbox& out);
  void tell_restarted(PeerId id, Peer& peer, const Hello& hello, Outbox& out);
  void on_begin_again(PeerId id, const BeginAgain& again, Outbox& out);
  // Variables.
  void on_declare(PeerId id, Peer& peer, const Declare& declare, Outbox& out);
  void take_declaration(const Peer& chief, const Declare& declare);
  void check_declaration(PeerId id, Peer& peer, Outbox& out);
  void agree(PeerId id, Peer& peer, Outbox& out);
  void on_write_end(PeerId id, Peer& peer, std::int64_t global_step, TimePoint now, Outbox& out);
  // Steps and the end.
  void tell_initialised(PeerId id, Peer& peer, Outbox& out);
  void on_done(Peer& peer, TimePoint now, Outbox& out);
  void on_goodbye(Peer& peer, TimePoint now, Outbox& out);
  void on_end_training(PeerId id, const Peer& peer, TimePoint now, Outbox& out);
  void trains_no_more(Peer& peer, Outbox& out);
  void tell_job_state(TimePoint now, Outbox& out);
  void tell_job_state(PeerId id, Peer& peer, Outbox& out);
  void tell_limits(Outbox& out);
  // Rounds.
  void open_rounds(TimePoint now);
  void on_shard_hello(PeerId id, Peer& peer, const Hello& hello, Outbox& out);
  bool closed_shard(std::map<PeerId, Peer>::iterator found, const Ended& ended, TimePoint now);
  void on_shard_message(const Peer& peer, const ControlMessage& message, Outbox& out);
  void check_contribution(const RoundContribution& contribution) const;
  void give(PeerId id, Peer& peer, std::int64_t step, const StepBegin& begin);
  void end_giving(Peer& peer, bool skipped, Outbox& out);
  void take_whole(int shard, const RoundContribution& contribution, bool skipped, Outbox& out);
  bool workers_commit() const { return declared_ && declared_->aggregation.workers_commit; }
  void on_committed(PeerId id, const CommittedRound& committed, Outbox& out);
  void on_withdraw(const Peer& peer, std::int64_t step, Outbox& out);
  void on_round_open(PeerId id, Peer& peer, std::int64_t round, Outbox& out);
  void tell_open_round(Outbox::Decide& decide);
  void add_squares(int part, const RoundSquares& squares, Outbox& out);
  void send_to_shards(MessageType type, const ControlMessage::Body& body, Outbox& out);
  void decide(const RoundCoordinator::Decisions& decisions, Outbox& out);
  void carry_out(const RoundDecision& decision, Outbox& out);
  void tell(const RoundContribution& about, const StepDone& done, Outbox::Decide& decide);
  void join_rounds(const Peer& peer, Outbox& out);
  void leave_rounds(int worker, Outbox& out);
  TimePoint stop_waiting_for_absent(TimePoint now, Outbox& out);
  // Records that are shared out.
  void on_ask_records(PeerId id, const Peer& peer, const RecordWish& wish, Outbox& out);
  void on_reads_records(PeerId id, const Peer& peer, std::int64_t step, std::int64_t records,
                        Outbox& out);
  void counts_records(int worker, std::uint64_t incarnation, std::int64_t step, bool counts,
                      Outbox& out);
  void reads_no_more(const Peer& peer, bool lost, Outbox& out);
  void give_records(const PsRecordSharing::Answers& answers, Outbox& out);
  // Checkpoints.
  void on_find_file(PeerId id, const FindFile& file, Outbox& out);
  void on_mark(PeerId id, std::uint64_t save, Outbox& out);
  void ask_for_states(PeerId chief, std::uint64_t save, SavedShard& what, Outbox& out);
  void on_task_state(Peer& peer, const StateBytes& bytes, std::uint64_t save, Outbox& out);
  void check_is_chief(PeerId id, MessageType type) const;
  // Progress.
  void on_ask_progress(PeerId id, const Peer& chief, Outbox& out);
  void on_progress(Peer& peer, const std::string& text, Outbox& out);
  /// True when the state that is known of the worker is that after its last step.
  bool knows_state(int worker) const;
  MembershipOptions membership_options() const;

  PsTaskOptions options_;  // with any_job: complete once a job is adopted
  const TakeVariables take_variables_;
  Membership membership_;
  bool waits_for_job_;     // any_job, and no worker has come yet
  bool given_up_ = false;  // another job takes its place
  bool begins_again_ = false;
  std::uint64_t fingerprint_ = 0;         // of the variables of the adopted job
  std::map<int, std::string> processes_;  // by worker, the process that joined last
  std::map<PeerId, Peer> peers_;          // peers that are connected, or may come back
  std::optional<Declare> declared_;
  std::vector<std::string> flags_;  // the flags of the worker that declared `declared_`
  std::vector<std::int32_t> changed_after_reads_;
  std::unique_ptr<Aggregation> aggregation_;
  StepLimits decided_;
  std::unique_ptr<RoundCoordinator> coordinator_;  // on ps 0, in rounds
  std::unique_ptr<RoundNorms> norms_;              // on ps 0, in rounds
  std::unique_ptr<CoordinatorSearch> coordinator_search_;
  std::unique_ptr<PsRecordSharing> shares_;  // on ps 0, if records are shared out
  std::vector<PeerId> givers_;  // by worker: the peer of the last contribution to a round
  /// Until this time ps 0 waits for workers that have never joined.
  std::optional<TimePoint> waits_for_absent_;
  bool initialised_ = false;
  JobState told_;
  std::vector<PeerId> trainers_;    // by worker: the connection that trains, or kNobody
  std::vector<KnownState> states_;  // by worker
};

}  // namespace paceline
