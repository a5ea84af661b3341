// The pieces of variables that live on one ps, with their slots, and what is done to them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/buffer.h"
#include "base/deadline.h"
#include "exec/parameter_store.h"
#include "kernels/rule_kernel.h"
#include "net/memory/shared_memory.h"
#include "params/protocol/placement.h"
#include "params/shard/apply_pool.h"
#include "params/shard/copy_on_write_snapshot.h"
#include "params/shard/value_watchers.h"

namespace paceline {

/// One piece. Its calls may come from any thread. They lock one region of it after the other, so
/// that contributions to different regions do not wait for each other; rows lock all of it. Offsets
/// are bytes into the piece; offsets and lengths are checked by the caller.
class ShardPiece {
 public:
  /// The value lies in `value`, and the versions of its chunks in `versions`; both are zero-filled
  /// and must outlive the piece, as must the pool.
  ShardPiece(const VariableSpec& variable, const Piece& where, std::span<std::byte> value,
             std::span<std::uint64_t> versions, ApplyPool& pool);

  const VariableSpec& variable() const { return variable_; }
  const Piece& where() const { return where_; }
  std::size_t bytes() const { return value_.size(); }
  std::size_t row_bytes() const { return row_bytes_; }
  bool has_row(std::int64_t row) const {
    return row >= where_.first_row && row < where_.first_row + where_.rows;
  }

  /// Counts a contribution: Adam's t for all of its chunks. Until end_contribution it is under way.
  std::int64_t begin_contribution();
  void end_contribution();
  /// Applies the rule to a range and copies the new values of it to `updated`, unless that is
  /// empty; past the caches, if it is more than they keep.
  void apply(const RuleStep& step, std::size_t offset, std::span<const std::byte> gradient,
             std::span<std::byte> updated);
  /// Applies the rule to rows, named as in the variable. `gradient` is (rows.size(), row).
  void apply_rows(const RuleStep& step, std::span<const std::int32_t> rows, const float* gradient);

  /// What `function` says of the whole value, which nobody writes meanwhile; false, uncalled, where
  /// more than that is locked bit by bit.
  template <typename F>
  bool with_value(F&& function) {
    if (regions_.size() != 1) return false;
    const std::lock_guard lock(regions_.front());
    return function(std::span<const std::byte>(value_));
  }
  void copy(std::size_t offset, std::span<std::byte> values);
  /// The rows, named as in the variable, one after the other.
  void copy_rows(std::span<const std::int32_t> rows, std::span<std::byte> values);
  /// How a worker gets at the value: where it lies, or in frames.
  enum class Reading { kInPlace, kFrames };
  /// After a reply: writes every element anew, alternately a little more and a little less.
  void rewrite(Reading reading);
  /// They are told of changes by whoever makes them.
  ValueWatchers& watchers() { return watchers_; }

  /// Arrays: 0 the value, 1 + s slot s.
  std::size_t arrays() const { return 1 + slots_.size(); }
  std::size_t array_bytes(std::size_t array) const;
  /// A value's first bytes make the slots begin anew (a moving average as the value), so that slots
  /// are written after it.
  void write(std::size_t array, std::size_t offset, std::span<const std::byte> bytes);
  /// All arrays of one moment, one after the other.
  void copy_all(std::span<std::byte> bytes);
  std::size_t all_bytes() const;

  /// What is there now is kept while contributions go on; if some are under way, what is there when
  /// none is.
  void mark();
  /// Waits until it is kept. At the deadline it is then kept region by region (256 KiB; rows: all
  /// of them), each between two updates.
  void wait_marked(Deadline deadline);
  /// Of the arrays as they were. One thread, after wait_marked.
  std::span<const std::byte> read_marked(std::size_t array, std::size_t offset, std::size_t bytes);
  CopyOnWriteSnapshot& snapshot() { return snapshot_; }

 private:
  std::span<std::byte> array(std::size_t array);
  void reset_slots();
  std::vector<Buffer> make_slots() const;
  std::vector<std::span<const std::byte>> kept_arrays() const;
  /// Calls function(begin, end) for parts of [begin, end) bytes, each with its region locked.
  template <typename F>
  void for_regions(std::size_t begin, std::size_t end, F&& function);
  template <typename F>
  void write_regions(std::size_t begin, std::size_t end, F&& function);
  std::vector<std::unique_lock<std::mutex>> lock_all();
  void write_locked(std::size_t array, std::size_t offset, std::span<const std::byte> bytes);
  void apply_locked(const RuleStep& step, std::size_t offset, std::span<const float> gradient);

  const VariableSpec variable_;
  const Piece where_;
  const std::size_t row_bytes_;
  const std::vector<SlotSpec> slot_specs_;
  const std::span<std::byte> value_;
  const std::span<std::uint64_t> versions_;
  const std::size_t region_bytes_;
  ApplyPool& pool_;
  std::deque<std::mutex> regions_;
  std::vector<Buffer> slots_;
  std::vector<float*> large_slots_;  // those as large as the piece
  int count_slot_ = -1;              // the scalar slot, if the rule counts
  std::atomic<std::int64_t> count_{0};
  std::atomic<std::int64_t> rewrites_{0};
  ValueWatchers watchers_;
  CopyOnWriteSnapshot snapshot_;
  std::mutex under_way_mutex_;
  std::condition_variable none_under_way_;
  int under_way_ = 0;  // contributions
  bool to_be_marked_ = false;
};

/// All pieces of one ps; made once, when the variables are declared.
class Shard {
 public:
  /// Throws kInvalidArgument when a variable cannot be held: a rule on another type than float32,
  /// or more memory than this machine has. The pool must outlive the shard.
  Shard(std::vector<VariableSpec> variables, std::vector<Piece> pieces, int ps, ApplyPool& pool);

  int ps() const { return ps_; }
  std::span<const VariableSpec> variables() const { return variables_; }
  std::span<const Piece> all_pieces() const { return pieces_; }
  /// Here, by position.
  std::size_t size() const { return local_.size(); }
  ShardPiece& at(std::size_t position) { return *local_[position]; }
  /// The position of a piece by its id. Throws kDataLoss when it is not here.
  std::size_t position(std::uint32_t id) const;
  std::size_t bytes() const { return bytes_; }
  /// The values of all pieces, as shard_layout says. They change while others read: element by
  /// element.
  std::shared_ptr<const SharedMemory> values() const { return values_; }
  /// Where the value of a piece would lie in such memory.
  std::span<std::byte> place_of(std::size_t position, std::span<std::byte> memory) const {
    return memory.subspan(offsets_[position], local_[position]->bytes());
  }

 private:
  std::vector<VariableSpec> variables_;
  std::vector<Piece> pieces_;
  const int ps_;
  std::vector<int> positions_;  // by piece id; −1: elsewhere
  std::shared_ptr<SharedMemory> values_;
  std::vector<std::unique_ptr<ShardPiece>> local_;
  std::vector<std::size_t> offsets_;  // in values_, by position
  std::size_t bytes_ = 0;             // values and slots
};

}  // namespace paceline
