// One variable, or some rows of one, in memory: its value, the slots of its rule, and the count of
// its updates.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "exec/parameter_store.h"
#include "kernels/rule_kernel.h"
#include "params/shard/copy_on_write_snapshot.h"

namespace paceline {

/// The numbers for applying one contribution.
struct UpdateScalars {
  float learning_rate = 0;
  float clip_scale = 1;
  bool must_be_finite = false;  // NaN or infinity throws NotFinite
};

/// The memory of a variable. It locks nothing: the caller makes sure that no two threads change the
/// same elements at once, and that nobody reads elements while they change. Arrays are numbered: 0
/// is the value, 1 + s is slot s.
class VariableMemory {
 public:
  /// The most slots of the value's size that a variable can have, its moving average included.
  static constexpr std::size_t kMaxSlots = 4;

  /// A whole variable, which gets its memory at the first write. Like the other constructor, throws
  /// kInvalidArgument when the rule cannot be applied to such a variable.
  explicit VariableMemory(const VariableSpec& spec);
  /// `rows` rows of a variable from `first_row` on (a scalar has one row). The value lies in
  /// `value`, which must outlive this object; slots have memory of their own and begin as the rule
  /// says.
  VariableMemory(const VariableSpec& spec, std::int64_t first_row, std::int64_t rows,
                 std::span<std::byte> value);

  const VariableSpec& spec() const { return spec_; }
  std::size_t row_bytes() const { return row_bytes_; }
  /// True once the variable has memory.
  bool written() const { return snapshot_ != nullptr; }
  std::span<std::byte> value() const { return value_; }
  TensorView view() const { return {value_.data(), spec_.dtype, shape_}; }

  std::size_t arrays() const { return 1 + slot_specs_.size(); }
  std::size_t array_bytes(std::size_t array) const;
  std::size_t all_bytes() const;

  /// Writes value and slots. If the state has no slots, the slots begin anew; a moving average then
  /// begins as a copy of the value. At the first write, tensors that nobody else holds are taken
  /// over without a copy. Throws kInvalidArgument, which names the variable, when the number of
  /// slots, a shape or a type differs.
  void write(VariableState state);
  /// Writes bytes of one array, within which they must lie. Writing the first bytes of a value
  /// makes the slots begin anew, so write slots after the value.
  void write(std::size_t array, std::size_t offset, std::span<const std::byte> bytes);
  /// Moves the written value to other memory, which must outlive this object. Do not call it while
  /// the variable is marked.
  void move_value(std::span<std::byte> to);
  /// Returns a copy of value and slots.
  VariableState read(VariableId id) const;
  /// Copies all arrays to `bytes`, one after the other.
  void copy_all(std::span<std::byte> bytes) const;

  /// Keeps value and slots as they are now while updates go on. No update may be under way, and the
  /// variable must have been written.
  void mark() { snapshot_->mark(count_); }
  /// Returns bytes of an array as they were at the mark. One thread calls it.
  std::span<const std::byte> read_marked(std::size_t array, std::size_t offset, std::size_t bytes);
  CopyOnWriteSnapshot& snapshot() { return *snapshot_; }

  /// Returns the present bytes of an array. Empty for a scalar slot, whose value is count().
  std::span<const std::byte> array(std::size_t array) const {
    if (is_scalar(array)) return {};
    return array == 0 ? std::span<const std::byte>(value_) : slot_bytes(array - 1);
  }
  std::int64_t count() const { return count_; }
  /// Counts one contribution (Adam's t), and returns the count.
  std::int64_t next_count() { return ++count_; }
  /// Begins one contribution that arrives in ranges. Returns the RuleStep with which each range
  /// must be applied.
  RuleStep begin_contribution(const UpdateScalars& scalars);
  /// Call it before bytes [begin, end) of the value change in any way other than by the calls
  /// below.
  void before_change(std::size_t begin, std::size_t end) { snapshot_->before_change(begin, end); }
  /// Applies the rule to the elements from `first` on, as many as `gradient` has. Several threads
  /// may do so at once if their ranges do not overlap. Allocates nothing.
  void apply_range(const RuleStep& step, std::int64_t first, std::span<const float> gradient);
  /// Applies the rule to the rows `ids`, which are ids in the variable. The caller checks that the
  /// ids are unique and within this memory. `gradient` is (ids.size(), …). Several threads may call
  /// it at once for different rows. Allocates nothing.
  void apply_row_range(const RuleStep& step, std::span<const std::int32_t> ids,
                       const float* gradient);

  /// Applies one contribution by a rule that asks for the whole variable, all of which this memory
  /// must hold. Allocates what the rule's steps need.
  void apply_whole(const RuleStep& step, const float* gradient, ThreadPool& pool);

  /// Applies one contribution to all elements; `pool` may be null. Allocates nothing, unless the
  /// rule asks for the whole variable (apply_whole).
  void apply(const UpdateScalars& scalars, const float* gradient, ThreadPool* pool);
  /// Applies one contribution to rows `ids` (unique); `gradient` is (ids.size(), …). Throws
  /// kInvalidArgument for an id that is no row of this memory.
  void apply_rows(const UpdateScalars& scalars, std::span<const std::int32_t> ids,
                  const float* gradient, ThreadPool* pool);

 private:
  bool is_scalar(std::size_t array) const { return array > 0 && slot_specs_[array - 1].scalar; }
  std::span<const std::byte> slot_bytes(std::size_t slot) const;
  void check(const VariableState& state) const;
  void put_value(Tensor value);
  void put_slots(std::vector<Tensor> slots);
  void make_slots();
  void reset_slots();
  void begin_average(std::size_t offset, std::span<const std::byte> bytes);
  void settle();
  void check_rows(std::span<const std::int32_t> ids) const;

  const VariableSpec spec_;
  const std::int64_t first_row_;
  const Shape shape_;  // of the rows in this memory
  const std::size_t row_bytes_;
  const std::vector<SlotSpec> slot_specs_;
  Tensor own_value_;  // undefined if the caller owns the value's memory
  std::span<std::byte> value_;
  std::vector<Tensor> slots_;                      // by slot; undefined for a scalar slot
  std::vector<float*> full_slots_;                 // the slots that are not scalar
  std::atomic<std::int64_t> count_{0};             // the value of a scalar slot
  std::unique_ptr<CopyOnWriteSnapshot> snapshot_;  // set once the variable has memory
};

}  // namespace paceline
