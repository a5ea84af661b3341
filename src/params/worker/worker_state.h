// The state of a worker's store: its connections write what has arrived, and its steps wait on it.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "exec/parameter_store.h"
#include "net/link.h"
#include "params/protocol/placement.h"
#include "params/wakeup.h"
#include "params/wire/message.h"
#include "params/worker/contribution_buffer.h"
#include "params/worker/mapped_shards.h"
#include "params/worker/pending_read.h"
#include "params/worker/ps_store.h"
#include "params/worker/pulled_value.h"
#include "params/worker/save_inbox.h"

namespace paceline {

/// Values of all variables, and how much of what was asked for has arrived. One step thread asks
/// and waits; threads of the link fill, and it too while it waits.
class WorkerState {
 public:
  /// The options must outlive it.
  WorkerState(std::vector<VariableSpec> variables, const PsStoreOptions& options);

  std::span<const VariableSpec> variables() const { return variables_; }
  std::span<const Piece> pieces() const { return pieces_; }
  std::span<const Piece> pieces_of(VariableId variable) const;
  std::size_t row_bytes(VariableId variable) const { return row_bytes_[std::size_t(variable)]; }
  std::size_t bytes_of(const Piece& piece) const {
    return std::size_t(piece.rows) * row_bytes(piece.variable);
  }
  /// This worker's copy of the value; undefined until allocate() was called for the variable.
  const Tensor& value(VariableId variable) const { return values_[std::size_t(variable)].value(); }
  void allocate(VariableId variable) { values_[std::size_t(variable)].allocate(); }
  /// The piece's rows in that copy. Throws kDataLoss when there is none.
  std::span<std::byte> value_of(const Piece& piece) const;
  const PsStoreOptions& options() const { return options_; }
  /// The values in the memory of ps tasks of this host.
  MappedShards& shards() { return shards_; }
  /// The copies of values that ps tasks of this host write for this worker alone. A variable is
  /// there once all ps tasks that keep some of it have shared theirs.
  MappedShards& copies() { return copies_; }
  /// The whole variable in memory of ps tasks of this host, to be read there; null when it is not
  /// there.
  const std::byte* mapped(VariableId variable) const { return shards_.variable(variable); }
  ContributionBuffer& space(VariableId variable) { return spaces_[std::size_t(variable)]; }

  /// More bytes of the piece were asked for, or have come.
  void expect(const Piece& piece, std::size_t bytes);
  void arrive(const Piece& piece, std::size_t bytes);
  /// The first piece of the variable that has not wholly come; null: all have.
  const Piece* missing(VariableId variable) const;
  /// A contribution in shared memory was applied to the piece. Throws kDataLoss when there is none.
  void take(const Piece& piece);
  /// The piece was copied for this worker. Throws kDataLoss when it did not ask.
  void copied(const Piece& piece);

  /// There is such a version of the piece, and what has come for this worker is that one.
  void note_version(const Piece& piece, std::uint64_t version);
  void note_held_version(const Piece& piece, std::uint64_t version);
  std::uint64_t held_version(const Piece& piece) const { return arrivals_[piece.id].held_version; }
  /// True when some piece has a newer version than the one that has come.
  bool changed(VariableId variable) const;
  /// The next value of a variable of one piece.
  PulledValue& pulled(VariableId variable) { return values_[std::size_t(variable)]; }
  const PulledValue& pulled(VariableId variable) const { return values_[std::size_t(variable)]; }
  void next_arrived(const Piece& piece, std::uint64_t version);
  /// True when the next value has come and is newer than the one that is held.
  bool next_is_newer(VariableId variable) const;
  /// True when the next value has come and no newer one is known of.
  bool next_is_newest(VariableId variable) const;
  void take_next(VariableId variable);

  /// Told while it joins: a ps changes the variable of its own accord, after each read. Throws
  /// kDataLoss when there is no such variable. Threads of several links may call at once.
  void note_changes_after_reads(VariableId variable);
  bool changes_after_reads(VariableId variable) const {
    return changes_after_reads_[std::size_t(variable)];
  }

  /// The first error is kept; every waiter wakes.
  void fail(const Error& error);
  /// Fails with kDeadlineExceeded, and throws it: "WHAT within 60 s WHOM".
  [[noreturn]] void fail_late(const std::string& what, const std::string& whom);
  bool failed() const { return failed_; }
  /// Can be read once it has failed: for waits elsewhere.
  const EventFd& failure() const { return failure_; }
  void check() const;

  /// `spin`: how long a wait polls before it sleeps.
  void set_link(Link* link, Duration spin) {
    link_ = link;
    spin_ = spin;
  }
  Deadline reply_deadline() const { return Deadline::after(options_.reply_timeout); }
  void notify() { wakeup_.notify(); }
  Wakeup& wakeup() { return wakeup_; }
  /// Returns when the predicate holds; false at the deadline. Throws the store's error.
  template <typename Predicate>
  bool wait(Deadline deadline, Predicate&& predicate) {
    const auto come = [&] { return failed() || predicate(); };
    if (!poll_for(come) && !wakeup_.wait(*link_, deadline, come)) return false;
    check();
    return true;
  }
  /// Calls wait(deadline) until it returns true; false when it has returned false after as long as
  /// a reply may take, in which no connection was cut off.
  template <typename Wait>
  bool wait_patiently(Wait&& wait) {
    while (true) {
      const std::int64_t before = cuts;
      if (wait(reply_deadline())) return true;
      if (cut_off == 0 && cuts == before) return false;
    }
  }
  /// Waits for a reply. Returns false when it takes too long. Throws the store's error.
  template <typename Predicate>
  bool wait_for_reply(Predicate&& come) {
    return wait_patiently([&](Deadline deadline) { return wait(deadline, come); });
  }
  /// Returns true when nothing is `left()`; false when for as long as a reply may take it has not
  /// become less. For what is so much that it comes bit by bit. Throws the store's error.
  template <typename Left>
  bool wait_for_all(Left&& left) {
    while (true) {
      const auto before = left();
      if (wait_for_reply([&] { return left() <= 0; })) return true;
      if (left() >= before) return false;
    }
  }

  /// Begins the read that kState frames answer, until the next one begins.
  PendingRead& start_read(std::span<const VariableId> variables);
  /// Throws kDataLoss when there is none.
  PendingRead& reading() const;

  // The state that the worker's state machine knows, as WorkerDriver publishes it.
  std::atomic<std::int64_t> global_step{0};
  std::atomic<std::int64_t> steps_sent{0}, steps_done{0};  // train steps of this store
  // These are of rounds that the workers commit; the scale is that of `scaled_round`.
  std::atomic<std::int64_t> steps_given{0}, scaled_round{-1};
  std::atomic<float> scale{1};
  std::atomic<std::uint64_t> last_contributors{0};
  std::atomic<bool> round_is_open{false};
  std::atomic<bool> all_warm{false}, any_done{false}, all_done{false}, training_ended{false};
  std::atomic<bool> stop_asked{false};
  std::atomic<int> cut_off{0};        // ps tasks whose connection was cut and is not made yet
  std::atomic<std::int64_t> cuts{0};  // so often was one cut
  /// The number of the save for which this worker's state is asked for; 0: it is not.
  std::atomic<std::uint64_t> state_asked{0};
  SaveInbox& save_inbox() { return save_inbox_; }

 private:
  struct Arrival {
    std::atomic<std::int64_t> expected{0}, arrived{0};
    std::atomic<std::uint64_t> newest_version{0}, held_version{0}, next_version{0};
  };
  // Polls for a little before the caller sleeps: a reply is often on its way.
  template <typename Predicate>
  bool poll_for(Predicate&& come) {
    if (come()) return true;
    const Deadline end = Deadline::after(spin_);
    while (!end.passed()) {
      link_->help();
      if (come()) return true;
    }
    return false;
  }

  const std::vector<VariableSpec> variables_;
  const std::vector<Piece> pieces_;
  const PsStoreOptions& options_;
  std::vector<std::size_t> first_piece_, row_bytes_;  // by variable
  std::deque<PulledValue> values_;
  MappedShards shards_, copies_;
  std::deque<ContributionBuffer> spaces_;
  std::deque<Arrival> arrivals_;                       // by piece
  std::deque<std::atomic<bool>> changes_after_reads_;  // by variable
  Wakeup wakeup_;
  SaveInbox save_inbox_;
  Link* link_ = nullptr;
  Duration spin_{};

  std::atomic<PendingRead*> reading_{nullptr};
  std::unique_ptr<PendingRead> read_;

  std::atomic<bool> failed_{false};
  const EventFd failure_;
  mutable std::mutex error_mutex_;
  std::optional<Error> error_;
};

}  // namespace paceline
