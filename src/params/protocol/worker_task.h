// A job as one worker sees it: how the worker finds every ps, agrees with it on the variables,
// learns where to begin, may begin its steps, and leaves. A plain state machine: events and their
// times go in, an outbox comes out. It has no thread, socket or clock. docs/wire.md has the
// messages.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "paceline/strategy.h"
#include "params/protocol/outbox.h"
#include "params/wire/task_state.h"
#include "params/wire/travelling_type.h"

namespace paceline {

/// Counts how stale the contributions of one worker were, in memory of constant size. Numbers below
/// 128 have a count each. Larger numbers share buckets, 64 for each doubling of the number (as in
/// HdrHistogram). Adding allocates nothing.
class StalenessHistogram {
 public:
  /// A negative number means that the contribution was not applied: it is left out.
  void add(std::int64_t updates);
  Staleness summary() const;

 private:
  static constexpr int kExactBits = 7, kLargestBits = 31;
  static constexpr std::size_t kHalf = std::size_t{1} << (kExactBits - 1);
  static constexpr std::size_t kBuckets = kHalf * (kLargestBits - kExactBits + 2);
  static std::size_t bucket_of(std::int64_t updates);
  static std::int64_t middle_of(std::size_t bucket);

  std::array<std::int64_t, kBuckets> counts_{};
  std::int64_t contributions_ = 0, updates_ = 0;
};

struct WorkerTaskOptions {
  int worker = 0;
  int workers = 0;              // the number of workers; 0: unknown
  std::vector<std::string> ps;  // the name of each ps in messages: "ps:0 at host:2222"
  std::string cluster_id;
  std::uint64_t incarnation = 0;        // of this process
  std::string process;                  // for messages: "pid 4711 on host b"
  std::uint64_t fingerprint = 0;        // of the variables
  std::vector<std::string> flags = {};  // the flags on which workers must agree
  Declare declare;
  Duration join_timeout{};
  /// The time within which a connection that was cut may come back; 0: a cut connection is lost at
  /// once.
  Duration reconnect_timeout{};
  Duration say_after{};  // a wait that is longer than this is told to the user
};

/// The peers of the outbox are the indices of ps tasks.
class WorkerTask {
 public:
  WorkerTask(WorkerTaskOptions options, TimePoint now);

  /// Does what is due by now: tries again to connect, or says what the worker waits for. Returns
  /// the latest time for the next call.
  ///
  /// Throws kUnavailable when join_timeout has passed. Throws kAborted when reconnect_timeout has
  /// passed since a connection was cut, and when all ps tasks have to begin again because one of
  /// them has lost its values.
  TimePoint tick(TimePoint now, Outbox& out);

  // The answers to Outbox::Connect.
  /// `form` is how float32 contributions travel on this connection.
  void connected(int ps, const ContributionForm& form, Outbox& out);
  void connect_failed(int ps, const std::string& why, TimePoint now);

  /// Throws kDataLoss for a message that a ps must not send, kFailedPrecondition for a refusal, and
  /// kAborted when the ps is not the process that has welcomed this worker.
  void received(int ps, const ControlMessage& message, TimePoint now, Outbox& out);
  enum class Closed : std::uint8_t {
    kExpected,  // this worker has left
    kTryAgain,  // the ps serves another job, or went away before it answered
    kCutOff,    // tick() connects again, as the same incarnation
    kLost,
    kStranger,  // the ps's answers to two hellos made no sense: it does not speak Paceline
  };
  /// The end of the connection to a ps.
  struct Ended {
    std::string where;  // "ps:0 at host:2222 in step 41, last message values"
    /// How many numbered messages of the ps were handled, on all connections.
    std::uint64_t handled = 0;
    bool all_confirmed = false;  // the ps has handled everything that was sent to it
    bool broken = false;  // the ps sent a message that it must not send, so it may not come back
  };
  Closed closed(int ps, const Error& error, const Ended& ended, TimePoint now, Outbox& out);
  /// The number of ps tasks whose connection was cut and is not yet made anew.
  int cut_off() const;

  /// True once every ps has agreed on the variables, and none has to begin again.
  bool joined() const;
  bool initialised() const;
  /// True when the variables were initialised before this worker joined, because it was restarted
  /// or came late.
  bool was_initialised() const { return peers_.front().was_initialised; }
  /// Call it to wait until the variables are initialised. Until then, tick() says what the worker
  /// waits for, and the deadline of join_timeout holds.
  void wait_initialised(TimePoint now);

  // Steps.
  /// The number of the next own step; known once initialised.
  std::int64_t next_step() const { return next_step_; }
  /// False while the next step would be too far ahead of the slowest member's step; in rounds,
  /// while the round of the previous step is open on some ps.
  bool may_begin_step() const { return next_step_ <= step_limit_; }
  /// Takes the number of the next step.
  std::int64_t begin_step() { return next_step_++; }

  // Rounds that the workers commit.
  /// All own steps below this number have whole contributions on every ps.
  std::int64_t steps_given() const { return steps_given_; }
  /// The fingerprint of the workers whose contributions counted, together with this worker's, in
  /// this worker's last finished step; 0: this worker's contribution was dropped.
  std::uint64_t last_contributors() const { return last_contributors_; }
  /// The last scale that the ps tasks told.
  const RoundScale& scale() const { return scale_; }
  void commit(const CommittedRound& committed, Outbox& out);
  /// Tells ps 0 that the workers will not commit this own step.
  void withdraw(std::int64_t step, Outbox& out);
  /// Asks every ps to tell when the round is open. round_is_open() then becomes true.
  void await_round(std::int64_t round, Outbox& out);
  bool round_is_open() const;
  /// Call it in the chief when the state that belongs to the values of the ps tasks is lost, so
  /// that all ps tasks must forget these values. Asks ps 0 first, and the other ps tasks once ps 0
  /// has agreed. ps 0 refuses while a worker that the chief does not reach trains with the values:
  /// received() then throws kFailedPrecondition. Once all ps tasks have agreed, tick() throws
  /// kAborted. It throws kUnavailable when join_timeout has passed since this call.
  void begin_again(std::string why, const BeginAgain& again, TimePoint now, Outbox& out);
  /// The process of ps 0 that this worker has joined.
  std::uint64_t ps_incarnation() const { return peers_.front().incarnation; }

  // Records that are shared out.
  void ask_records(const RecordWish& wish, Outbox& out);
  /// Tells ps 0 that the step that has just begun reads up to this number of the records that this
  /// worker was given.
  void reads_records(std::int64_t records, Outbox& out);
  /// Takes the records that have arrived since the last call.
  GivenRecords take_records() { return std::exchange(given_, {}); }
  /// All own steps below this number are done: their kStepDone has arrived, in rounds from each ps.
  std::int64_t steps_done() const { return steps_done_; }
  std::int64_t global_step() const { return global_step_; }
  /// The staleness of the steps that are done.
  Staleness staleness() const;

  /// Tells the ps tasks that the timed training of this worker is over. The worker may make more
  /// steps, which no speed counts, until all workers are done.
  void set_done(Outbox& out);
  /// Ends the training of all workers: a worker that has heard of it begins no more steps.
  void end_training(Outbox& out);
  /// True when this or another worker has ended the training of all.
  bool training_ended() const { return state_.ended; }
  /// Leaves in good order: from now on the end of a connection is no error.
  void leave(Outbox& out);

  const JobState& job_state() const { return state_; }
  bool stop_asked() const { return stop_asked_; }
  /// The number of the save that asks for this worker's state; 0: no save asks.
  std::uint64_t state_asked() const { return state_asked_; }
  void set_state_told() { state_asked_ = 0; }
  /// This worker's state in the checkpoint from which it resumes.
  const std::optional<TaskState>& restored() const { return restored_; }
  /// How often the ps has confirmed that all values were written.
  int written(int ps) const { return peers_[std::size_t(ps)].written; }
  bool all_closed() const;
  bool has_closed(int ps) const { return peers_[std::size_t(ps)].closed; }

 private:
  enum class Phase : std::uint8_t { kApart, kConnecting, kGreeted, kWelcomed };
  struct Peer {
    Phase phase = Phase::kApart;
    bool agreed = false;  // the ps has agreed on the variables
    bool was_initialised = false, initialised = false, closed = false, busy = false;
    bool refused = false;
    bool garbled = false;       // what the ps said before its welcome made no sense
    bool begins_again = false;  // this worker is the chief, and has asked the ps to begin again
    int written = 0;
    std::uint64_t incarnation = 0;  // of the ps
    std::uint64_t epoch = 0;        // membership epoch last seen; 0: the ps has sent no welcome
    std::uint64_t handled = 0;      // numbered messages that were handled until cut_at
    std::int64_t steps_done = 0;    // in rounds: as steps_done()
    std::optional<std::int64_t> open_round;  // the answer to the last await_round()
    std::optional<TimePoint> cut_at;
    std::string cut_why;
    bool welcomed() const { return epoch != 0; }
    TimePoint try_at{};
    Duration back_off{};
    /// Why the last try to connect failed, and the last reason that differed from it.
    std::string why, why_before;
  };
  static void set_why(Peer& peer, const std::string& why);
  void try_again(Peer& peer, const std::string& why, TimePoint now);
  Hello hello(int ps, const ContributionForm& form) const;
  void on_welcome(int ps, Peer& peer, const Welcome& welcome, TimePoint now, Outbox& out);
  void on_refuse(int ps, Peer& peer, const std::string& why) const;
  void note_cut(Peer& peer, const Error& error, const Ended& ended, TimePoint now, Outbox& out);
  /// Tries to reach the ps tasks whose connections were cut. Returns the time for the next call.
  TimePoint come_back(TimePoint now, Outbox& out);
  [[noreturn]] void stays_away(const Peer& peer) const;
  void on_initialised(int ps, Peer& peer, const Initialised& told);
  bool in_rounds() const { return options_.declare.aggregation.kind == AggregationKind::kRounds; }
  void on_step_done(int ps, Peer& peer, std::int64_t step, const StepDone& done);
  void on_job_state(const JobState& state);
  void on_records(const GivenRecords& given);
  [[noreturn]] void on_restarted(int ps, Peer& peer) const;
  void find_lost_values(TimePoint now, Outbox& out);
  void forget_values(int ps, const BeginAgain& again, Outbox& out);
  void check_begun_again() const;
  /// Says in words what the worker waits for; empty when it does not wait.
  std::string awaited() const;
  [[noreturn]] void too_late() const;
  /// The first ps that has not welcomed this worker yet. If all have, the first that has not agreed
  /// yet. Null when there is none.
  const Peer* behind() const;

  const WorkerTaskOptions options_;
  TimePoint deadline_, next_say_;
  std::string said_for_;  // the wait that next_say_ is about
  std::string lost_why_;
  bool others_follow_ = false;  // the other ps tasks are asked to begin again once ps 0 does
  int lost_values_ = -1;  // the ps that has lost its values while others have theirs; −1: none
  std::vector<Peer> peers_;
  bool waits_initialised_ = false, leaving_ = false, stop_asked_ = false;
  JobState state_;
  std::int64_t global_step_ = 0, next_step_ = 0, steps_done_ = 0;
  std::int64_t step_limit_;
  std::int64_t steps_given_ = 0;
  std::uint64_t last_contributors_ = 0;
  RoundScale scale_{.round = -1};
  StalenessHistogram staleness_;
  std::int64_t too_late_ = 0;
  std::uint64_t state_asked_ = 0;
  std::optional<TaskState> restored_;
  GivenRecords given_;  // records that were not taken yet
};

}  // namespace paceline
