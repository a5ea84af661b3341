// A piece of a variable that lives on a ps: its memory, which many threads share and workers read
// in place.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <vector>

#include "base/deadline.h"
#include "exec/parameter_store.h"
#include "kernels/rule_kernel.h"
#include "params/protocol/change_subscriptions.h"
#include "params/protocol/placement.h"
#include "params/shard/after_read.h"
#include "params/shard/apply_pool.h"
#include "params/shard/contribution_mean.h"
#include "params/shard/copy_on_write_snapshot.h"
#include "params/shard/variable_memory.h"

namespace paceline {

class ShardPiece;

/// Is told that a piece's values have changed, once for each subscription. The call may come from
/// any thread, and must not block.
class ChangeListener {
 public:
  virtual ~ChangeListener() = default;
  /// `wanted` is true when the listener waits for the values (subscribe_after).
  virtual void on_changed(ShardPiece& piece, bool wanted) = 0;
};

/// Counts the changes of a piece's values, and tells the piece's listeners of them: the real driver
/// of protocol/change_subscriptions.h. Thread-safe.
class ChangeNotifier {
 public:
  /// Returns the version of the values, which counts their changes. The values may already include
  /// a change that is not counted yet.
  std::uint64_t version() const { return version_; }
  /// Subscribes `listener` to the first change after the returned version. Values that are read
  /// from now on are of that version or newer. The listener must outlive the last change of the
  /// piece's values.
  std::uint64_t subscribe(ChangeListener& listener);
  /// Subscribes to the first change after `version`; the listener waits for the new values. If that
  /// change has happened already, does not subscribe, and returns false.
  bool subscribe_after(std::uint64_t version, ChangeListener& listener);
  /// Counts a change of the values, and tells the subscribed listeners.
  void tell(ShardPiece& piece);

 private:
  std::atomic<std::uint64_t> version_{0};
  std::atomic<bool> subscribed_{false};
  std::mutex mutex_;
  ChangeSubscriptions<ChangeListener*> subscriptions_;
};

/// One piece. Any thread may call it. Most calls lock one region of the piece after the other, so
/// that contributions to different regions do not wait for each other. The piece of a sparse
/// variable is a single region. Offsets are bytes into the piece. The caller checks offsets and
/// lengths.
class ShardPiece {
 public:
  /// The value lies in `value`, which the caller has filled with zeros. `value` and `pool` must
  /// outlive the piece. Throws as VariableMemory does.
  ShardPiece(const VariableSpec& variable, const Piece& where, std::span<std::byte> value,
             ApplyPool& pool);

  const VariableSpec& variable() const { return memory_.spec(); }
  const Piece& where() const { return where_; }
  std::size_t bytes() const { return memory_.value().size(); }
  std::size_t row_bytes() const { return memory_.row_bytes(); }
  bool has_row(std::int64_t row) const {
    return row >= where_.first_row && row < where_.first_row + where_.rows;
  }

  /// Counts a contribution, which lasts until end_contribution. Returns the count (Adam's t) for
  /// all of its chunks.
  std::int64_t begin_contribution();
  void end_contribution();
  /// Applies the rule to the range at `offset`, which is as long as `gradient`, and copies the
  /// range's new values to `updated` unless that is empty. A copy of more than 4 MiB goes past the
  /// caches. For a rule that asks for its whole variable, the range must be the whole piece.
  void apply(const RuleStep& step, std::size_t offset, std::span<const std::byte> gradient,
             std::span<std::byte> updated);
  /// Applies the rule to all of the piece, with the mean of dense contributions. Computes the mean
  /// part by part while applying the rule. Not for a rule that asks for its whole variable.
  void apply_mean(const RuleStep& step, std::span<const MeanPart> parts);
  /// Applies the rule to rows, by their ids in the variable. `gradient` is (rows.size(), row).
  void apply_rows(const RuleStep& step, std::span<const std::int32_t> rows, const float* gradient);

  /// Returns how long the calling thread has waited for regions that others had locked, since the
  /// thread's previous call. Waits of the pool's threads are not counted.
  static Duration take_lock_wait();

  /// Calls function(value) with the whole value, which nobody writes meanwhile, and returns its
  /// result. If the piece has several regions, calls nothing and returns false.
  template <typename F>
  bool with_value(F&& function) {
    if (regions_.size() != 1) return false;
    const std::lock_guard lock(regions_.front());
    return function(std::span<const std::byte>(memory_.value()));
  }
  void copy(std::size_t offset, std::span<std::byte> values);
  /// Copies the rows to `values`, one after the other. `rows` are ids in the variable.
  void copy_rows(std::span<const std::int32_t> rows, std::span<std::byte> values);
  /// The ways in which a worker reads the value: in shared memory, or in frames.
  enum class Reading { kInPlace, kFrames };
  /// Calls `change` after each read from now on. `change` must outlive the piece, whose variable is
  /// of float32. Call this before any worker reads.
  void change_after_reads(const AfterRead& change);
  bool changes_after_reads() const { return after_read_ != nullptr; }
  /// Call it when a worker has read the value, or was sent it. Changes the value now, if
  /// change_after_reads() was called.
  void was_read(Reading reading) {
    if (after_read_ != nullptr) change(reading);
  }
  /// Counts the changes of this piece's values and tells the listeners. Each function of this class
  /// that changes the values reports to it.
  ChangeNotifier& changes() { return changes_; }

  /// Arrays are numbered as in VariableMemory: 0 is the value, 1 + s is slot s.
  std::size_t arrays() const { return memory_.arrays(); }
  std::size_t array_bytes(std::size_t array) const { return memory_.array_bytes(array); }
  /// Writes as VariableMemory::write does.
  void write(std::size_t array, std::size_t offset, std::span<const std::byte> bytes);
  /// Copies all arrays to `bytes`, one after the other, as they are at one moment.
  void copy_all(std::span<std::byte> bytes);
  std::size_t all_bytes() const { return memory_.all_bytes(); }

  /// Keeps the present arrays while contributions go on. If some contributions are under way, keeps
  /// the arrays of a later moment at which no contribution is under way.
  void mark();
  /// Waits until the piece is kept. At the deadline, keeps the piece as it is, even if
  /// contributions are under way: such a contribution may have changed some regions (of 256 KiB)
  /// and not yet others. The piece of a sparse variable is a single region.
  void wait_marked(Deadline deadline);
  /// Returns bytes of the arrays as they were kept. One thread calls it, after wait_marked.
  std::span<const std::byte> read_marked(std::size_t array, std::size_t offset, std::size_t bytes) {
    return memory_.read_marked(array, offset, bytes);
  }
  CopyOnWriteSnapshot& snapshot() { return memory_.snapshot(); }

 private:
  /// Calls function(begin, end) for parts of [begin, end) bytes, each with its region locked.
  template <typename F>
  void for_regions(std::size_t begin, std::size_t end, F&& function);
  std::vector<std::unique_lock<std::mutex>> lock_all();
  void change(Reading reading);
  void apply_whole(const RuleStep& step, std::span<const std::byte> gradient,
                   std::span<std::byte> updated);

  const Piece where_;
  VariableMemory memory_;
  const std::size_t region_bytes_;
  ApplyPool& pool_;
  std::deque<std::mutex> regions_;
  const AfterRead* after_read_ = nullptr;
  std::atomic<std::int64_t> reads_{0};  // reads that after_read_ has followed
  ChangeNotifier changes_;
  std::mutex under_way_mutex_;
  std::condition_variable none_under_way_;
  int under_way_ = 0;  // contributions under way
  bool to_be_marked_ = false;
};

}  // namespace paceline
