// A job as one worker sees it: how it finds every ps, agrees with it on the variables, learns where
// to begin, may begin its steps, and leaves. A plain state machine: events and their times go in,
// an outbox comes out; no thread, socket or clock inside. docs/wire.md has the messages.
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

/// How stale the contributions of one worker were, counted in memory that is laid out once. Numbers
/// below 128 are counted exactly, larger ones in buckets of which 64 double the number (as
/// HdrHistogram has them). Adding allocates nothing.
class StalenessHistogram {
 public:
  /// A negative number stands for a contribution that was not applied, and is not counted.
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
  int workers = 0;              // in the cluster spec; 0: unknown
  std::vector<std::string> ps;  // what each is called in messages: "ps:0 at host:2222"
  std::string cluster_id;
  std::uint64_t incarnation = 0;        // of this process
  std::string process;                  // for messages: "pid 4711 on host b"
  std::uint64_t fingerprint = 0;        // of the variables
  std::vector<std::string> flags = {};  // on which workers must agree
  Declare declare;
  Duration join_timeout{};
  /// The time within which a connection that was cut may come back; 0: it is lost at once.
  Duration reconnect_timeout{};
  Duration say_after{};  // how long a wait is silent
};

/// Peers of the outbox are the indices of ps tasks.
class WorkerTask {
 public:
  WorkerTask(WorkerTaskOptions options, TimePoint now);

  /// Does what time alone brings about: the next try to connect, or a line that says what is waited
  /// for. Throws kUnavailable when join_timeout has passed; kAborted when reconnect_timeout has
  /// passed since a connection was cut, and when all ps tasks have to begin again, since one of
  /// them has lost its values. Returns when to call again at the latest.
  TimePoint tick(TimePoint now, Outbox& out);

  // Answers to Outbox::Connect.
  /// `wire` is what float32 numbers travel as on this connection.
  void connected(int ps, const ContributionForm& form, Outbox& out);
  void connect_failed(int ps, const std::string& why, TimePoint now);

  /// Throws kDataLoss for a message that a ps must not send, kFailedPrecondition for a refusal,
  /// kAborted when the ps is not the process that has welcomed this worker.
  void received(int ps, const ControlMessage& message, TimePoint now, Outbox& out);
  enum class Closed : std::uint8_t {
    kExpected,  // this worker has left
    kTryAgain,  // the ps serves another job, or went away before it answered
    kCutOff,    // tick() makes it anew, as the same incarnation
    kLost,
    kStranger,  // twice its answer to a hello made no sense: it does not speak Paceline
  };
  /// The end of the connection to a ps.
  struct Ended {
    std::string where;           // "ps:0 at host:2222 in step 41, last message values"
    std::uint64_t handled = 0;   // numbered messages of the ps, on all its connections
    bool all_confirmed = false;  // the ps has handled all that was sent to it
    bool broken = false;         // by a message that must not be sent: it may not come back
  };
  Closed closed(int ps, const Error& error, const Ended& ended, TimePoint now, Outbox& out);
  /// The number of ps tasks whose connection was cut and is not made yet.
  int cut_off() const;

  /// True once every ps has agreed on the variables, and none has to begin again.
  bool joined() const;
  bool initialised() const;
  /// The variables were initialised before this worker came: it was restarted, or came late.
  bool was_initialised() const { return peers_.front().was_initialised; }
  /// From now on tick() says what is waited for, and the deadline of join_timeout holds, until the
  /// variables are initialised.
  void wait_initialised(TimePoint now);

  // Steps.
  /// The number of the next own step; known once initialised.
  std::int64_t next_step() const { return next_step_; }
  /// False while the next step would be too far ahead of the slowest member; in rounds, while the
  /// round of the last step is open on some ps.
  bool may_begin_step() const { return next_step_ <= step_limit_; }
  /// Takes the number of the next step.
  std::int64_t begin_step() { return next_step_++; }

  // Rounds that the workers commit.
  /// Steps whose contributions are whole on every ps, as the number of the next one.
  std::int64_t steps_given() const { return steps_given_; }
  /// The fingerprint of the workers with whose contributions the last step that is done has
  /// counted; 0: it was dropped.
  std::uint64_t last_contributors() const { return last_contributors_; }
  /// The last that was told.
  const RoundScale& scale() const { return scale_; }
  void commit(const CommittedRound& committed, Outbox& out);
  /// The own step will not be committed.
  void withdraw(std::int64_t step, Outbox& out);
  /// Asks every ps to tell once the round is open, after which round_is_open() is true.
  void await_round(std::int64_t round, Outbox& out);
  bool round_is_open() const;
  /// The chief finds that what belongs to the values of the ps tasks is lost: all ps tasks are to
  /// forget them, ps 0 first, which refuses that while a worker that the chief does not reach
  /// trains with them. tick() then throws kAborted; or kUnavailable, after join_timeout from now.
  void begin_again(std::string why, const BeginAgain& again, TimePoint now, Outbox& out);
  /// The process of ps 0 that this worker has joined.
  std::uint64_t ps_incarnation() const { return peers_.front().incarnation; }

  // Records that are shared out.
  void ask_records(const RecordWish& wish, Outbox& out);
  /// The step that has just begun reads what this worker was given, up to this number of records.
  void reads_records(std::int64_t records, Outbox& out);
  /// Takes what has arrived since the last call.
  GivenRecords take_records() { return std::exchange(given_, {}); }
  /// Steps whose kStepDone has arrived, from each ps in rounds, as the number of the next one.
  std::int64_t steps_done() const { return steps_done_; }
  std::int64_t global_step() const { return global_step_; }
  /// The staleness of the steps that are done.
  Staleness staleness() const;

  /// The training of this worker is over; it may go on untimed until all are done.
  void set_done(Outbox& out);
  /// Ends the training of all workers: none begins another step once it has heard of it.
  void end_training(Outbox& out);
  /// True when this or another worker has called it.
  bool training_ended() const { return state_.ended; }
  /// Leaves in good order: from now on the end of a connection is no error.
  void leave(Outbox& out);

  const JobState& job_state() const { return state_; }
  bool stop_asked() const { return stop_asked_; }
  /// The save for which this worker's state is asked for; 0: it is not.
  std::uint64_t state_asked() const { return state_asked_; }
  void set_state_told() { state_asked_ = 0; }
  /// This worker's place when what it resumes from was saved.
  const std::optional<TaskState>& restored() const { return restored_; }
  /// The number of times that the ps has confirmed that all values were written.
  int written(int ps) const { return peers_[std::size_t(ps)].written; }
  bool all_closed() const;
  bool has_closed(int ps) const { return peers_[std::size_t(ps)].closed; }

 private:
  enum class Phase : std::uint8_t { kApart, kConnecting, kGreeted, kWelcomed };
  struct Peer {
    Phase phase = Phase::kApart;
    bool agreed = false;  // on the variables
    bool was_initialised = false, initialised = false, closed = false, busy = false;
    bool refused = false;
    bool garbled = false;       // what it said before its welcome made no sense
    bool begins_again = false;  // this worker, the chief, has asked for it
    int written = 0;
    std::uint64_t incarnation = 0;  // of the ps
    std::uint64_t epoch = 0;        // membership epoch last seen; 0: it has never been welcomed
    std::uint64_t handled = 0;      // numbered messages, when its last connection ended
    std::int64_t steps_done = 0;    // rounds: as steps_done()
    std::optional<std::int64_t> open_round;  // the answer to the last await_round()
    std::optional<TimePoint> cut_at;
    std::string cut_why;
    bool welcomed() const { return epoch != 0; }
    TimePoint try_at{};
    Duration back_off{};
    /// Why the last try failed, and why the one before did if for another reason.
    std::string why, why_before;
  };
  static void set_why(Peer& peer, const std::string& why);
  void try_again(Peer& peer, const std::string& why, TimePoint now);
  Hello hello(int ps, const ContributionForm& form) const;
  void on_welcome(int ps, Peer& peer, const Welcome& welcome, TimePoint now, Outbox& out);
  void on_refuse(int ps, Peer& peer, const std::string& why) const;
  void note_cut(Peer& peer, const Error& error, const Ended& ended, TimePoint now, Outbox& out);
  /// Tries to reach the ps tasks that were cut off. Returns when to call again.
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
  /// Says in words what is waited for; empty when nothing is.
  std::string awaited() const;
  [[noreturn]] void too_late() const;
  /// The first ps that is not yet welcomed, or else not yet agreed; null: none.
  const Peer* behind() const;

  const WorkerTaskOptions options_;
  TimePoint deadline_, next_say_;
  std::string said_for_;  // what next_say_ is about
  std::string lost_why_;
  bool others_follow_ = false;  // they begin again once ps 0 does
  int lost_values_ = -1;        // the ps whose values are gone while others have theirs; −1: none
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
  GivenRecords given_;  // not taken yet
};

}  // namespace paceline
