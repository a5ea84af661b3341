// The state of a worker's store: its connections write arriving data into it, and its steps wait on
// it.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "exec/parameter_store.h"
#include "net/frame.h"
#include "net/link.h"
#include "net/memory/contiguous_mapping.h"
#include "net/memory/shared_memory.h"
#include "paceline/tensor.h"
#include "params/protocol/placement.h"
#include "params/wakeup.h"
#include "params/wire/message.h"
#include "params/wire/save_messages.h"
#include "params/wire/task_state.h"
#include "params/worker/ps_store.h"

namespace paceline {

/// The answers of ps tasks while a checkpoint is written. The link's threads fill it, and the
/// saving thread waits for it.
class SaveInbox {
 public:
  explicit SaveInbox(int num_ps) : found_(std::size_t(num_ps)), saved_(std::size_t(num_ps)) {}

  /// Begins a new save. Forgets the answers to an older save, and ignores those that still arrive.
  void begin(std::uint64_t save);
  void put_found(int ps, bool found);
  void put_saved(int ps, std::uint64_t save, SavedShard shard);
  void put_state(TaskState state, std::uint64_t save);

  std::vector<std::optional<bool>> found() const;
  std::vector<std::optional<SavedShard>> saved() const;
  std::vector<TaskState> states() const;

  /// Says where bytes are to arrive: the bytes of the piece's array `array`, from byte `first` on,
  /// go to `memory`.
  void expect(std::uint32_t piece, std::uint16_t array, std::size_t first,
              std::span<std::byte> memory);
  /// Returns the memory for a frame's bytes. Throws kDataLoss for bytes that nobody expects.
  std::span<std::byte> place(const FrameHeader& header);
  void arrived(std::size_t bytes);
  std::size_t missing() const;

  /// Wakes a waiting thread. Call it when its predicate depends on other things, and these have
  /// changed.
  void wake();
  /// Waits until the predicate holds. Returns false if the deadline passes first. The predicate may
  /// call this object.
  template <typename Predicate>
  bool wait(Deadline deadline, Predicate&& predicate) {
    std::unique_lock lock(mutex_);
    while (true) {
      const std::uint64_t seen = changes_;
      lock.unlock();
      if (predicate()) return true;
      lock.lock();
      const auto changed = [&] { return changes_ != seen; };
      if (!changed_.wait_until(lock, deadline.time(), changed)) return false;
    }
  }

 private:
  template <typename F>
  void change(F&& function);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t changes_ = 0, save_ = 0;
  std::vector<std::optional<bool>> found_;
  std::vector<std::optional<SavedShard>> saved_;
  std::vector<TaskState> states_;
  struct Expected {
    std::uint32_t piece = 0;
    std::uint16_t array = 0;
    std::size_t first = 0;
    std::span<std::byte> memory;
  } expected_;
  std::size_t missing_ = 0;
};

/// The values and slots of one moment, which the ps tasks send in answer to a read. Threads of
/// several connections fill it at once, each with the pieces of its own ps.
class PendingRead {
 public:
  PendingRead(std::span<const VariableSpec> specs, std::span<const Piece> pieces,
              std::span<const VariableId> asked, int num_ps);

  /// Returns the memory for the bytes of a kState frame. Throws kDataLoss unless the bytes were
  /// asked for and follow the earlier ones, so that no ps can overwrite bytes that have arrived.
  std::span<std::byte> place(const FrameHeader& header);
  /// Notes that the bytes of a frame of `ps`, for which place() returned memory, have arrived.
  /// Returns true if no bytes are missing now: another thread may then destroy this object.
  bool arrived(int ps, const FrameHeader& header);
  /// The number of bytes that have not arrived.
  std::int64_t missing() const { return missing_; }
  /// The first ps whose bytes are missing; 0 when no bytes are missing.
  int first_missing() const;
  /// Call it once no bytes are missing. Returns the variables in the order of the request.
  std::vector<VariableState> take() { return std::move(states_); }

 private:
  void expect(const Piece& piece, const VariableSpec& spec, VariableState& state);

  std::vector<VariableState> states_;
  /// Receives the scalar slots of all pieces of a variable but its first one. They are not used:
  /// the variable takes its scalars from its first piece.
  std::vector<std::int64_t> other_scalars_;
  struct Array {
    std::span<std::byte> memory;  // in `states_`, or in other_scalars_
    std::size_t arrived = 0;      // bytes
  };
  /// By piece: its value, then its slots; empty: the piece was not asked for.
  std::vector<std::vector<Array>> arrays_;
  std::deque<std::atomic<std::int64_t>> owed_;  // missing bytes, by ps
  std::atomic<std::int64_t> missing_{0};        // their sum
};

/// A variable's value as its ps sent it, and the memory in which the next value arrives. One step
/// thread uses the value, asks for the next value and takes it over. Threads of the link, one at a
/// time, fill the memory of the next value.
class PulledValue {
 public:
  /// `spec` must outlive this object.
  explicit PulledValue(const VariableSpec& spec) : spec_(spec) {}

  /// Makes the memory, once.
  void allocate();
  bool held() const { return held_; }
  /// The value that kernels read. It is undefined until allocate().
  const Tensor& value() const { return memories_[std::size_t(front_)]; }

  /// Asks for a newer value. That value arrives in memory of its own, so kernels can read the
  /// present value meanwhile.
  void ask_next();
  /// Says that the next value is no longer wanted. It may still arrive.
  void forget_next() { next_ = Next::kUnasked; }
  bool next_asked() const { return next_ == Next::kAsked; }
  bool next_came() const { return next_ == Next::kCame; }
  /// Makes the value that has arrived the one that kernels read.
  void take_next();

  /// Returns the memory for the next value, which arrives in one frame. Returns an empty span when
  /// no value was asked for.
  std::span<std::byte> place_of_next() const;
  /// Notes that the next value has arrived. No further value is accepted before ask_next() is
  /// called again.
  void next_arrived();

 private:
  enum class Next : std::uint8_t { kUnasked, kAsked, kCame };

  const VariableSpec& spec_;
  std::array<Tensor, 2> memories_;
  std::atomic<int> front_{0};
  std::atomic<bool> held_{false};
  std::atomic<Next> next_{Next::kUnasked};
};

/// Memory that the ps tasks of this host share with a worker. Each ps shares one memory, laid out
/// as shard_layout says.
class MappedShards {
 public:
  /// The arguments must outlive this object.
  MappedShards(std::span<const VariableSpec> variables, std::span<const Piece> pieces, int num_ps);

  /// Maps the memory of a ps before its pieces are used. Any thread may call it. Throws kDataLoss
  /// when the memory is too small for the pieces, or when this ps has shared its memory before.
  void map(int ps, std::shared_ptr<const SharedMemory> memory);
  /// Returns the whole variable; null when it is not mapped, or when its pieces cannot lie one
  /// after the other.
  const std::byte* variable(VariableId variable) const { return mapped_[std::size_t(variable)]; }

 private:
  struct Joined {
    std::unique_ptr<ContiguousMapping> memory;
    std::size_t pieces = 0;
  };
  void map_part(const Piece& piece, const std::shared_ptr<const SharedMemory>& memory,
                std::size_t offset);

  const std::span<const VariableSpec> variables_;
  const std::span<const Piece> pieces_;
  std::vector<std::size_t> counts_;  // the number of pieces, by variable
  std::mutex mutex_;
  std::vector<std::shared_ptr<const SharedMemory>> memories_;  // by ps
  std::vector<Joined> joined_;                                 // the split variables, by variable
  std::vector<std::atomic<const std::byte*>> mapped_;          // by variable
};

/// The memory in which a worker's contribution to one variable waits until the ps tasks have taken
/// it. Memory of this process is free again once every frame of the contribution is sent. Memory
/// that ps tasks of this host read is free again once each of them has applied the contribution.
struct ContributionBuffer {
  TensorView values;  // as large as the largest plan needs
  std::vector<std::int32_t> ids;
  std::atomic<int> in_flight{0};
  Wakeup* wakeup = nullptr;

  /// The place of the space in shared memory: the number of this worker's shared memory, and the
  /// space's offset in that memory in bytes. Without a value, the space is not shared.
  struct Place {
    std::uint32_t memory = 0;
    std::size_t offset = 0;
  };
  std::optional<Place> shared;
  /// With error feedback: for each element of the variable, what rounding has left out so far.
  std::vector<float> errors;
  /// With --top-k: the largest numbers, in the form in which they travel. The largest numbers of a
  /// frame begin at the offset at which the frame's own numbers begin in `values`. So most of this
  /// memory is never touched.
  std::unique_ptr<std::byte[]> largest;
  /// Returns null when no errors are kept.
  float* errors_at(std::size_t element) { return errors.empty() ? nullptr : &errors[element]; }

  bool fits(std::int64_t elements) const {
    return values.data != nullptr && values.shape.elements() >= elements;
  }
  void use_own_memory(DType dtype, const Shape& shape);
  void use(const std::shared_ptr<SharedMemory>& memory, Place place, DType dtype,
           const Shape& shape);
  /// The `sent` function for Connection::send; its context is the buffer.
  static void sent(void* context);

 private:
  std::shared_ptr<const void> owner_;
};

/// The values of all variables, and how much of each request has arrived. One step thread asks and
/// waits. Threads of the link write arriving data here, as does the step thread while it waits.
class WorkerState {
 public:
  /// `options` must outlive this object.
  WorkerState(std::vector<VariableSpec> variables, const PsStoreOptions& options);

  std::span<const VariableSpec> variables() const { return variables_; }
  std::span<const Piece> pieces() const { return pieces_; }
  std::span<const Piece> pieces_of(VariableId variable) const;
  std::size_t row_bytes(VariableId variable) const { return row_bytes_[std::size_t(variable)]; }
  std::size_t bytes_of(const Piece& piece) const {
    return std::size_t(piece.rows) * row_bytes(piece.variable);
  }
  /// The value in this worker's own memory; undefined until allocate() was called for the variable.
  const Tensor& value(VariableId variable) const { return values_[std::size_t(variable)].value(); }
  void allocate(VariableId variable) { values_[std::size_t(variable)].allocate(); }
  /// Returns the piece's rows in this worker's own memory. Throws kDataLoss when that memory was
  /// not allocated.
  std::span<std::byte> value_of(const Piece& piece) const;
  const PsStoreOptions& options() const { return options_; }
  /// The values in the memory of ps tasks of this host.
  MappedShards& shards() { return shards_; }
  /// The copies of values that ps tasks of this host write for this worker alone. A variable has a
  /// copy once every ps task that keeps a part of it has shared its copy of that part.
  MappedShards& copies() { return copies_; }
  /// Returns the whole variable in memory of ps tasks of this host, where kernels may read it; null
  /// when that memory does not have it.
  const std::byte* mapped(VariableId variable) const { return shards_.variable(variable); }
  ContributionBuffer& space(VariableId variable) { return spaces_[std::size_t(variable)]; }

  /// expect: the worker has asked for `bytes` more bytes of the piece. arrive: `bytes` more bytes
  /// of it have arrived.
  void expect(const Piece& piece, std::size_t bytes);
  void arrive(const Piece& piece, std::size_t bytes);
  /// Returns the first piece of the variable that has not arrived whole; null when all pieces have.
  const Piece* missing(VariableId variable) const;
  /// Notes that a ps has applied this worker's contribution to the piece, which it read in shared
  /// memory. Throws kDataLoss when no contribution waits.
  void take(const Piece& piece);
  /// Notes that a ps has copied the piece for this worker. Throws kDataLoss when the worker did not
  /// ask for a copy.
  void copied(const Piece& piece);

  /// note_version: the ps has this version of the piece. note_held_version: the values that have
  /// arrived here have this version.
  void note_version(const Piece& piece, std::uint64_t version);
  void note_held_version(const Piece& piece, std::uint64_t version);
  std::uint64_t held_version(const Piece& piece) const { return arrivals_[piece.id].held_version; }
  /// True when some piece has a newer version than that of the values that have arrived.
  bool changed(VariableId variable) const;
  /// The held value and the next value of a variable that has one piece.
  PulledValue& pulled(VariableId variable) { return values_[std::size_t(variable)]; }
  const PulledValue& pulled(VariableId variable) const { return values_[std::size_t(variable)]; }
  void next_arrived(const Piece& piece, std::uint64_t version);
  /// True when the next value has arrived and is newer than the held value.
  bool next_is_newer(VariableId variable) const;
  /// True when the next value has arrived and no newer value is known.
  bool next_is_newest(VariableId variable) const;
  void take_next(VariableId variable);

  /// Notes, while the worker joins, that a ps changes the variable by itself after each read.
  /// Throws kDataLoss when there is no such variable. Threads of several links may call at once.
  void note_changes_after_reads(VariableId variable);
  bool changes_after_reads(VariableId variable) const {
    return changes_after_reads_[std::size_t(variable)];
  }

  /// Keeps the first error, and wakes every waiter.
  void fail(const Error& error);
  /// Fails with a kDeadlineExceeded error that says "WHAT within 60 s WHOM". Throws this error, or
  /// the error with which the state had failed before.
  [[noreturn]] void fail_late(const std::string& what, const std::string& whom);
  bool failed() const { return failed_; }
  /// Becomes readable once the state has failed, so that threads that wait elsewhere wake up.
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
  /// Returns true when the predicate holds, and false at the deadline. Throws the store's error.
  template <typename Predicate>
  bool wait(Deadline deadline, Predicate&& predicate) {
    const auto come = [&] { return failed() || predicate(); };
    if (!poll_for(come) && !wakeup_.wait(*link_, deadline, come)) return false;
    check();
    return true;
  }
  /// Calls wait(deadline) until it returns true; each deadline is the time that a reply may take.
  /// Returns false after a wait that returned false although no connection was cut off meanwhile.
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
  /// Waits for data so large that it arrives part by part; left() says how much is missing. Returns
  /// true when nothing is missing. Returns false when left() has not fallen for the time that a
  /// reply may take. Throws the store's error.
  template <typename Left>
  bool wait_for_all(Left&& left) {
    while (true) {
      const auto before = left();
      if (wait_for_reply([&] { return left() <= 0; })) return true;
      if (left() >= before) return false;
    }
  }

  /// Begins a read, which kState frames answer. The returned object lasts until the next read
  /// begins.
  PendingRead& start_read(std::span<const VariableId> variables);
  /// Throws kDataLoss when no read was begun.
  PendingRead& reading() const;

  // The state that the worker's state machine knows, as WorkerDriver publishes it.
  std::atomic<std::int64_t> global_step{0};
  std::atomic<std::int64_t> steps_sent{0}, steps_done{0};  // train steps of this store
  // For rounds that the workers commit. `scale` is the scale of the round `scaled_round`.
  std::atomic<std::int64_t> steps_given{0}, scaled_round{-1};
  std::atomic<float> scale{1};
  std::atomic<std::uint64_t> last_contributors{0};
  std::atomic<bool> round_is_open{false};
  std::atomic<bool> all_warm{false}, any_done{false}, all_done{false}, training_ended{false};
  std::atomic<bool> stop_asked{false};
  std::atomic<int> cut_off{0};        // ps tasks whose connection was cut and is not yet made anew
  std::atomic<std::int64_t> cuts{0};  // how often a connection was cut
  /// The number of the save that asks for this worker's state; 0: no save asks.
  std::atomic<std::uint64_t> state_asked{0};
  SaveInbox& save_inbox() { return save_inbox_; }

 private:
  struct Arrival {
    std::atomic<std::int64_t> expected{0}, arrived{0};
    std::atomic<std::uint64_t> newest_version{0}, held_version{0}, next_version{0};
  };
  // Polls for a short time before the caller sleeps, since the reply is often under way.
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
