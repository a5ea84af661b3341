// The real driver of a ps's state machine (protocol/ps_task.h): it serialises the events of all
// connections, does what the machine wants done, and keeps what no machine may: the shard, the
// connections, and what is measured.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "net/link.h"
#include "params/protocol/ps_task.h"
#include "params/ps/coordinator_connection.h"
#include "params/ps/ps_account.h"
#include "params/ps/round_applier.h"
#include "params/ps/serve.h"
#include "params/ps/shard_saver.h"
#include "params/shard/apply_pool.h"
#include "params/shard/shard.h"
#include "params/wire/control_message.h"

namespace paceline {

class PsPeer;

/// Calls may come from any thread. Its lock is held for small messages only, never while a rule is
/// applied.
class PsDriver {
 public:
  /// `wake` is called when `turn` has something to do; it must not block.
  PsDriver(const PsOptions& options, std::function<void()> wake);
  ~PsDriver();

  Receiver* accept(std::shared_ptr<Connection> connection);

  // Calls of a connection.
  /// Handles a message of the job's control. Throws when it is one that must not be sent.
  void control(PsPeer& peer, const ControlMessage& message);
  /// Throws kFailedPrecondition unless the peer has agreed on the variables, or, when `initialised`
  /// is asked for, while they are not.
  Shard& shard_for(PsPeer& peer, bool initialised);
  void refuse(PsPeer& peer, const std::string& why);
  /// Answers the chief.
  void tell_progress(PsPeer& peer);
  /// Ends the training of all workers.
  void refuse_all(const std::string& why);
  Fate begin_step(PsPeer& peer, std::int64_t step, bool reads_now, const StepBegin& begin);
  void end_step(PsPeer& peer, std::int64_t step, Fate fate, bool skipped = false);
  /// A contribution to a round, before end_step.
  RoundApplier& rounds() { return rounds_; }

  // Calls of the rounds and of the connection to ps 0.
  /// What was decided about these steps is done: their workers may go on.
  void tell(const Outbox::Decide& decided);
  void squares(const RoundSquares& squares);
  void from_coordinator(const ControlMessage& message);
  void coordinator_closed(std::uint64_t handled);
  /// A round could not be applied: turn() throws it.
  void fail(const std::exception_ptr& error);
  /// The peer's connection has ended. True: it may come back on another.
  bool closed(PsPeer& peer, const Error& error);
  /// The last call of a connection that has closed: the peer that it was made with may be destroyed
  /// meanwhile.
  void let_go(PsPeer& peer);

  /// Connects to ps 0, if that is wanted: of the main thread, before its turn.
  void connect_coordinator(Link& link);
  /// One turn of the main thread: it closes the connections of peers that were refused or say
  /// nothing, and tells workers what has changed. Returns when to call again at the latest.
  TimePoint turn(TimePoint now);
  Membership::End end(TimePoint now) const;
  std::string members() const;
  /// Tells the workers that this ps was told to stop. Returns false when there are none.
  bool ask_to_leave();
  bool all_gone() const;
  std::int64_t applied() const { return applied_; }
  /// Contributions that came after their round was closed, and were dropped, or folded into
  /// another.
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
  /// True when another job has taken its place (any_job).
  bool given_up() const;
  /// PsTask::begins_again: a new PsDriver is to take this one's place.
  bool begins_again() const;
  std::uint64_t epoch() const;
  PsAccount& account() { return account_; }
  TimePoint now() const { return options_.clock->now(); }
  /// May be null.
  Timeline* timeline() const { return options_.timeline; }
  /// The label for applying a piece's rule, by position; null without a timeline.
  const TimelineLabel* label(std::size_t position) const {
    return labels_.empty() ? nullptr : labels_[position];
  }
  void say(const std::string& line) const;
  void warn(const std::string& line) const;
  /// The cluster id of its job; empty while it waits for a job to serve.
  std::string id() const;

 private:
  struct RunRounds {};
  using HostAction =
      std::variant<Outbox::Find, Outbox::Mark, Outbox::Save, Outbox::GoOn, RunRounds>;

  PsTaskOptions machine_options() const;
  std::vector<std::int32_t> take_variables(const Declare& declare);
  /// Calls event(out) under the lock, and does what the machine wants done.
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
  /// Sends to a peer that may have gone meanwhile.
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
  bool connects_ = false;  // to ps 0, in the main thread's next turn
  std::exception_ptr failure_;
  RoundApplier rounds_{*this};
  std::vector<PeerId> forgotten_;      // who will not come back, until the next turn
  Bytes bytes_gone_;                   // of peers that were never members
  std::optional<Bytes> bytes_before_;  // when use_ began
  ShardSaver saving_;                  // last: its thread calls what is above
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
