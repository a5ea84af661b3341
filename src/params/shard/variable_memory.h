// One variable, or some rows of one, in memory: its value, the slots of its rule, and how often it
// was updated.
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

/// The numbers with which one contribution is applied.
struct UpdateScalars {
  float learning_rate = 0;
  float clip_scale = 1;
  bool must_be_finite = false;  // NaN and infinity are refused: NotFinite
};

/// It locks nothing: its user sees to it that no two threads change the same elements at once, and
/// that nobody reads what is being changed. Arrays are numbered: 0 is the value, 1 + s is slot s.
class VariableMemory {
 public:
  /// The rules of a variable can update at most so many arrays of its size beside the value.
  static constexpr std::size_t kMaxSlots = 4;

  /// A whole variable; the first write brings its memory. Throws kInvalidArgument, as the other
  /// constructor does, when the rule cannot be applied to such a variable.
  explicit VariableMemory(const VariableSpec& spec);
  /// `rows` rows of a variable from `first_row` on (a scalar has one row). The value lies in
  /// `value`, which must outlive this object; slots have memory of their own and begin as the rule
  /// says.
  VariableMemory(const VariableSpec& spec, std::int64_t first_row, std::int64_t rows,
                 std::span<std::byte> value);

  const VariableSpec& spec() const { return spec_; }
  std::size_t row_bytes() const { return row_bytes_; }
  /// True once there is memory.
  bool written() const { return snapshot_ != nullptr; }
  std::span<std::byte> value() const { return value_; }
  TensorView view() const { return {value_.data(), spec_.dtype, shape_}; }

  std::size_t arrays() const { return 1 + slot_specs_.size(); }
  std::size_t array_bytes(std::size_t array) const;
  std::size_t all_bytes() const;

  /// Writes value and slots. A state without slots makes them begin anew (a moving average as the
  /// value). The first write keeps the memory of tensors that nobody else holds. Throws
  /// kInvalidArgument naming the variable when a shape or type differs.
  void write(VariableState state);
  /// Writes bytes of one array, which must be within it. A value's first bytes make the slots begin
  /// anew, so that slots are written after it.
  void write(std::size_t array, std::size_t offset, std::span<const std::byte> bytes);
  /// Moves the value, which was written, to other memory, which must outlive this object. Not while
  /// it is marked.
  void move_value(std::span<std::byte> to);
  /// Returns a copy of value and slots.
  VariableState read(VariableId id) const;
  /// Copies all arrays to `bytes`, one after the other.
  void copy_all(std::span<std::byte> bytes) const;

  /// Keeps value and slots as they are now while updates go on; no update may be under way. It must
  /// have been written.
  void mark() { snapshot_->mark(count_); }
  /// Returns bytes of an array as they were at the mark. One thread.
  std::span<const std::byte> read_marked(std::size_t array, std::size_t offset, std::size_t bytes);
  CopyOnWriteSnapshot& snapshot() { return *snapshot_; }

  /// Returns the bytes of an array as they are now; empty for a scalar, which is count().
  std::span<const std::byte> array(std::size_t array) const {
    if (is_scalar(array)) return {};
    return array == 0 ? std::span<const std::byte>(value_) : slot_bytes(array - 1);
  }
  std::int64_t count() const { return count_; }
  /// Counts one contribution (Adam's t), and returns how many there were.
  std::int64_t next_count() { return ++count_; }
  /// Begins one contribution that arrives in ranges. Returns the step to apply each of them with.
  RuleStep begin_contribution(const UpdateScalars& scalars);
  /// It is called before bytes [begin, end) of the value are changed by other means than the calls
  /// below.
  void before_change(std::size_t begin, std::size_t end) { snapshot_->before_change(begin, end); }
  /// Applies the rule to elements from `first` on. Threads may apply ranges of their own at once.
  /// Allocates nothing.
  void apply_range(const RuleStep& step, std::int64_t first, std::span<const float> gradient);
  /// Applies the rule to rows `ids`, named as in the variable, unique and within this memory
  /// (checked by the caller): gradient (ids.size(), …). As apply_range.
  void apply_row_range(const RuleStep& step, std::span<const std::int32_t> ids,
                       const float* gradient);

  /// Applies one contribution of a rule that asks for the whole variable, which this memory must
  /// hold. It allocates what the rule's steps need.
  void apply_whole(const RuleStep& step, const float* gradient, ThreadPool& pool);

  /// Applies one contribution to all elements; `pool` may be null. Allocates nothing, but as
  /// apply_whole.
  void apply(const UpdateScalars& scalars, const float* gradient, ThreadPool* pool);
  /// Applies one contribution to rows `ids` (unique): gradient (ids.size(), …). Throws
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
  void check_rows_finite(std::span<const std::int32_t> ids, const float* gradient) const;
  void check_rows(std::span<const std::int32_t> ids) const;

  const VariableSpec spec_;
  const std::int64_t first_row_;
  const Shape shape_;  // of the rows that are here
  const std::size_t row_bytes_;
  const std::vector<SlotSpec> slot_specs_;
  Tensor own_value_;  // undefined where the value's memory is somebody else's
  std::span<std::byte> value_;
  std::vector<Tensor> slots_;           // as slot_specs_; a scalar one is undefined: count_
  std::vector<float*> full_slots_;      // those that are not scalar
  std::atomic<std::int64_t> count_{0};  // what a scalar slot holds
  std::unique_ptr<CopyOnWriteSnapshot> snapshot_;  // once there is memory
};

}  // namespace paceline
