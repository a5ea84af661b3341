// The real driver of a ps's state machine (protocol/ps_task.h). It serialises the events of all
// connections, does what the state machine asks for, and owns what a state machine does not have:
// the shard, the connections and the measurements.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "net/link.h"
#include "params/protocol/outbox.h"
#include "params/protocol/ps_task.h"
#include "params/ps/incoming_step.h"
#include "params/ps/replies.h"
#include "params/ps/serve.h"
#include "params/resumable_connection.h"
#include "params/shard/apply_pool.h"
#include "params/shard/contribution_mean.h"
#include "params/shard/shard.h"
#include "params/wire/control_message.h"
#include "params/wire/save_messages.h"

namespace paceline {

/// One ps's part of a checkpoint. A saver keeps the content of the shard at one moment, and writes
/// that content in a thread of its own while contributions are applied. Calls may come from any
/// thread; the calls of one save come one after the other.
class ShardSaver {
 public:
  explicit ShardSaver(bool sees_files) : sees_files_(sees_files) {}
  ~ShardSaver();
  ShardSaver(const ShardSaver&) = delete;
  ShardSaver& operator=(const ShardSaver&) = delete;

  /// Returns true when this host sees the file with that content. Shards are then written into the
  /// file's folder, or into folders below it, and nowhere else. Also begins to make memory for
  /// copies of the values.
  bool find(const FindFile& file, Shard& shard);
  /// Marks the values of this moment. `what` is the answer to the chief if all goes well.
  void mark(Shard& shard, const SavedShard& what);
  /// Writes the marked shard as `path` in a thread, which then calls `done`. If the path is empty,
  /// the thread only waits until all pieces are kept, and the chief then reads them (kReadMarked).
  /// A path outside the folder, or a mark during an earlier save, is refused: `done` is then called
  /// at once, with the error.
  void write(Shard& shard, const std::string& path, std::function<void(const SavedShard&)> done);

 private:
  std::string why_not(const std::string& path) const;
  SavedShard write_now(Shard& shard, const std::string& path);
  /// Runs `work`, which sets busy_ to false at its end, in a thread.
  void start(std::function<void()> work);

  const bool sees_files_;
  std::mutex mutex_;
  std::string folder_;  // where the file was found
  SavedShard what_;
  /// True if thread_ makes memory for copies; false if it writes a shard.
  bool makes_room_ = false;
  bool refused_ = false;  // a mark arrived while a shard was being written
  std::atomic<bool> busy_{false}, cancelled_{false};
  std::thread thread_;
};

class NotFinite;
class PsDriver;

/// One worker's whole contribution to a round, until the round has been applied.
struct KeptContribution {
  std::shared_ptr<IncomingStep> step;  // has the contribution, or says where it lies
  /// The worker's shared memories, which must stay mapped until the round has been applied.
  std::vector<std::shared_ptr<const SharedMemory>> memories;
  std::vector<StepEnd::Entry> entries;  // by position in the shard
  std::shared_ptr<SharedMemory> copy;   // the worker's copy of the values; may be null
  Replies* replies = nullptr;
  std::uint64_t number = 0;     // the worker's step
  std::vector<bool> in_frames;  // by position: the worker gets the new values in frames
};

/// Carries out the decisions about rounds on one ps: it applies the mean of the contributions that
/// wait here, and answers their workers. It carries out one decision after the other, in the thread
/// that calls run(); a call of run() returns at once while another thread is in run(). While a
/// round waits for its scale, later decisions wait, too. Thread-safe.
class RoundApplier {
 public:
  explicit RoundApplier(PsDriver& driver) : driver_(driver) {}

  void keep(int worker, std::uint64_t incarnation, KeptContribution contribution);
  // Queues a decision. The calls must be in the order in which the state machine decides.
  void push(Shard& shard, Outbox::Decide decide);
  void push(const RoundScale& scale);
  /// Calls `act` once everything that was pushed before is carried out.
  void push(std::function<void()> act);
  /// Carries out everything that was pushed, up to a decision whose scale has not arrived.
  void run();

 private:
  using Key = std::pair<int, std::uint64_t>;  // worker, incarnation
  using Work = std::variant<Outbox::Decide, std::function<void()>>;

  std::optional<Work> next();
  void begin(Outbox::Decide decide);
  void finish(float scale);
  void take(std::span<const RoundContribution> named, std::vector<KeptContribution>& taken);
  std::vector<MeanPart> parts(std::size_t position) const;
  double sum(std::size_t position);
  void apply(std::size_t position, float scale, bool clipped);
  void apply_mean(std::size_t position, const RuleStep& step, std::span<const MeanPart> parts,
                  bool clipped);
  Error blame(std::size_t position, const NotFinite& of_mean) const;
  template <typename F>
  void for_kept(F&& act);
  void hand_back(const KeptContribution& kept, std::size_t position);
  void send_values(std::size_t position);

  PsDriver& driver_;
  std::mutex mutex_;
  std::map<Key, KeptContribution> kept_;
  std::deque<Work> waiting_;
  std::optional<RoundScale> scale_;  // the scale that has arrived
  bool running_ = false;

  // The thread in run() uses these members without the lock.
  Shard* shard_ = nullptr;
  Outbox::Decide now_;
  bool awaits_scale_ = false;
  std::vector<KeptContribution> contributors_, dropped_;
  std::vector<RowMean> row_means_;  // by position
  /// By position: the mean of the contributions, if the mean is clipped or the rule needs all of
  /// it.
  std::vector<Buffer> means_;
  // This budget has no limit: the budget of each worker limits what may wait for that worker.
  const std::shared_ptr<ReplyBlocks> common_blocks_ =
      std::make_shared<ReplyBlocks>(ReplyBudget(std::numeric_limits<std::size_t>::max() / 2));
};

/// Accounts for the time of the threads of a ps task. The time from the first contribution to the
/// last has three shares. Apply is the time in rules, without waits for another thread that has the
/// variable locked. Queue is the rest of the time in which some frame had begun to arrive and was
/// not handled yet. Idle is all other time. Thread-safe.
class PsAccount {
 public:
  struct Shares {
    double seconds = 0, apply = 0, queue = 0, idle = 1;
  };

  void add_apply(Duration time) { apply_ns_ += time.count(); }
  void add_handling(Duration time) { handling_ns_ += time.count(); }
  void contribution_at(TimePoint now);
  Shares shares(int threads) const;

 private:
  std::atomic<std::int64_t> apply_ns_{0}, handling_ns_{0}, first_ns_{0}, last_ns_{0};
};

/// The conversation of a ps with ps 0, which decides about rounds, over one connection after the
/// other.
class CoordinatorConnection : public Receiver {
 public:
  explicit CoordinatorConnection(PsDriver& driver);

  /// Tries to connect once; throws what Link::connect throws.
  void connect(Link& link, const std::string& address, Deadline deadline);
  /// Sends a message, now or once there is a connection.
  void send(const ControlMessage& message);
  /// The handshake is over, and ps 0 has handled `handled` numbered messages. Sends it the later
  /// ones, again if necessary.
  void go_on(std::uint64_t handled) { stream_.go_on(handled); }

  std::span<std::byte> place_payload(const FrameHeader& header) override;
  void on_frame(const FrameHeader& header, std::span<const std::byte> payload) override;
  void on_closed(const Error& error) override;

 private:
  PsDriver& driver_;
  std::vector<std::byte> received_;
  ResumableConnection stream_;
  Inlet inlet_;
};

class PsPeer;

/// The ps's state machine, shard and connections, for calls from any thread. The lock is held for
/// small messages only, never while a rule is applied.
class PsDriver {
 public:
  /// `wake` is called when `turn` has something to do; it must not block.
  PsDriver(const PsOptions& options, std::function<void()> wake);
  ~PsDriver();

  Receiver* accept(std::shared_ptr<Connection> connection);

  // Calls of a connection.
  /// Handles a control message of the job. Throws when a peer must not send it.
  void control(PsPeer& peer, const ControlMessage& message);
  /// Returns the shard. Throws kFailedPrecondition unless the peer has agreed on the variables and,
  /// if `initialised` is true, they are initialised.
  Shard& shard_for(PsPeer& peer, bool initialised);
  void refuse(PsPeer& peer, const std::string& why);
  /// Answers the chief's question about progress.
  void tell_progress(PsPeer& peer);
  /// Ends the training of all workers.
  void refuse_all(const std::string& why);
  Fate begin_step(PsPeer& peer, std::int64_t step, bool reads_now, const StepBegin& begin);
  void end_step(PsPeer& peer, std::int64_t step, Fate fate, bool skipped = false);
  /// Has the contributions to rounds. Give it a contribution (keep) before end_step.
  RoundApplier& rounds() { return rounds_; }

  // Calls of the rounds and of the connection to ps 0.
  /// Call it when a decision has been carried out. Tells the workers that their steps are done, and
  /// which of them may begin the next round.
  void tell(const Outbox::Decide& decided);
  void squares(const RoundSquares& squares);
  void from_coordinator(const ControlMessage& message);
  void coordinator_closed(std::uint64_t handled);
  /// Call it when a round could not be applied: turn() will throw the error.
  void fail(const std::exception_ptr& error);
  /// Call it when the peer's connection has ended. Returns true when the peer may come back on
  /// another connection.
  bool closed(PsPeer& peer, const Error& error);
  /// The last call about the connection with which the peer was made. From then on the peer may be
  /// destroyed, unless it is a member.
  void let_go(PsPeer& peer);

  /// Tries to connect to ps 0 if the state machine has asked for that. The main thread calls it
  /// before each turn().
  void connect_coordinator(Link& link);
  /// One turn of the main thread: closes the connections of peers that were refused or say nothing,
  /// frees what was kept for workers that will not come back, and tells workers what has changed.
  /// Throws the error of fail(). Returns the latest time for the next call.
  TimePoint turn(TimePoint now);
  Membership::End end(TimePoint now) const;
  std::string members() const;
  /// Tells the workers that this ps was told to stop. Returns false when it has no workers.
  bool ask_to_leave();
  bool all_gone() const;
  std::int64_t applied() const { return applied_; }
  /// How many contributions arrived after their round was closed. They were dropped, or folded into
  /// another round.
  std::int64_t late() const { return late_; }
  std::int64_t global_step() const;
  /// Bytes that went over links since the first contribution.
  struct Bytes {
    std::int64_t sent = 0, received = 0;
  };
  Bytes bytes() const;
  std::optional<MachineUse> use() const { return use_.measure(); }
  /// The work that was done so far.
  PsSummary summary() const;
  KeptOnPs kept() const;
  /// Threads of the link.
  int threads() const { return threads_; }
  /// True when another job has taken the place of this ps's job (any_job).
  bool given_up() const;
  /// True when a new PsDriver must take this one's place (PsTask::begins_again).
  bool begins_again() const;
  std::uint64_t epoch() const;
  PsAccount& account() { return account_; }
  TimePoint now() const { return options_.clock->now(); }
  /// May be null.
  Timeline* timeline() const { return options_.timeline; }
  /// Returns the label of the timeline's events in which the rule of the piece at `position` is
  /// applied; null without a timeline.
  const TimelineLabel* label(std::size_t position) const {
    return labels_.empty() ? nullptr : labels_[position];
  }
  void say(const std::string& line) const;
  void warn(const std::string& line) const;
  /// The cluster id of this ps's job; empty while the ps waits for its first job (any_job).
  std::string id() const;

 private:
  struct RunRounds {};
  using HostAction =
      std::variant<Outbox::Find, Outbox::Mark, Outbox::Save, Outbox::GoOn, RunRounds>;

  PsTaskOptions machine_options() const;
  std::vector<std::int32_t> take_variables(const Declare& declare);
  /// Calls event(out) under the lock, and does what the state machine has put into `out`.
  template <typename Event>
  auto drive(Event&& event);
  void carry_out(std::vector<HostAction>& later);
  void carry_out(Outbox::Decide decide);
  template <typename Action>
  void carry_out_in_order(Action action, std::vector<HostAction>& later);
  CoordinatorConnection& coordinator();
  void carry_out(const Outbox::Send& send);
  void carry_out(const Outbox::Line& line) const;
  void carry_out_unlocked(const HostAction& action);
  void go_on(const Outbox::GoOn& action);
  /// Sends to a peer, unless the peer has gone meanwhile.
  void answer(PeerId to, MessageType type, ControlMessage::Body body, std::uint64_t step = 0);
  PsPeer* find(PeerId id) const;
  void forget_unidentified(std::span<const std::pair<PsPeer*, Duration>> closing);
  Bytes bytes_locked() const;

  const PsOptions options_;
  const int threads_;
  const std::function<void()> wake_;
  PsAccount account_;
  std::atomic<std::int64_t> applied_{0}, late_{0};
  UseMeter use_;

  mutable std::mutex mutex_;
  ApplyPool apply_pool_;
  std::unique_ptr<Shard> shard_;
  std::vector<const TimelineLabel*> labels_;
  PsTask machine_;
  Outbox out_;
  PeerId next_peer_ = 1;
  std::map<PeerId, std::unique_ptr<PsPeer>> peers_;
  std::vector<std::pair<PeerId, Duration>> closing_;
  std::unique_ptr<CoordinatorConnection> coordinator_;
  bool connects_ = false;  // the main thread must connect to ps 0 in its next turn
  std::exception_ptr failure_;
  RoundApplier rounds_{*this};
  std::vector<PeerId> forgotten_;      // peers that will not come back; emptied in the next turn
  Bytes bytes_gone_;                   // bytes of connections whose peers never became members
  std::optional<Bytes> bytes_before_;  // the bytes at the time when use_ began
  // Last, so that it is destroyed first: its thread calls the members above.
  ShardSaver saving_;
};

template <typename Event>
auto PsDriver::drive(Event&& event) {
  using Result = decltype(event(out_));
  std::vector<HostAction> later;
  const auto finish = [&] {
    for (const HostAction& action : later) carry_out_unlocked(action);
  };
  std::unique_lock lock(mutex_);
  out_.clear();
  if constexpr (std::is_void_v<Result>) {
    event(out_);
    carry_out(later);
    lock.unlock();
    finish();
  } else {
    Result result = event(out_);
    carry_out(later);
    lock.unlock();
    finish();
    return result;
  }
}

}  // namespace paceline
