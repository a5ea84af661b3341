// A variable as whoever applies its rule holds it: value, slots and how often it was updated.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/thread_pool.h"
#include "exec/parameter_store.h"
#include "kernels/rule_kernel.h"
#include "params/shard/copy_on_write_snapshot.h"

namespace paceline {

/// What one contribution is applied with.
struct UpdateScalars {
  float learning_rate = 0;
  float clip_scale = 1;
};

class VariableMemory {
 public:
  /// Throws kInvalidArgument when the rule cannot be applied to such a variable.
  explicit VariableMemory(VariableSpec spec);

  const VariableSpec& spec() const { return spec_; }
  bool written() const { return value_.defined(); }
  TensorView view() const { return value_.view(); }
  /// Value and slots; without slots they begin anew (a moving average as the value). The first time
  /// it keeps the memory of tensors that nobody else holds. Throws kInvalidArgument naming the
  /// variable when a shape or type differs.
  void write(VariableState state);
  /// Copies.
  VariableState read(VariableId id) const;

  /// Value and slots as they are now, kept while updates go on; between two updates. Null before
  /// the first: updates then ask nobody.
  void mark();
  CopyOnWriteSnapshot* snapshot() { return snapshot_.get(); }
  /// Memory for the moments; the variable was written.
  void make_room();
  std::span<const SlotSpec> slot_specs() const { return slot_specs_; }

  /// Begins one contribution that comes in ranges: what to apply each of them with.
  RuleStep begin_contribution(const UpdateScalars& scalars);
  /// Elements from `first` on. Threads may apply ranges of their own at once. Allocates nothing.
  void apply_range(const RuleStep& step, std::int64_t first, std::span<const float> gradient);
  /// The whole variable; `pool` may be null. Allocates nothing.
  void apply(const UpdateScalars& scalars, const float* gradient, ThreadPool* pool);
  /// Rows `ids` (unique) of it: gradient (ids.size(), …). Throws kInvalidArgument for an id that is
  /// no row.
  void apply_rows(const UpdateScalars& scalars, std::span<const std::int32_t> ids,
                  const float* gradient, ThreadPool* pool);

 private:
  void write_slots(std::vector<Tensor> slots);
  std::int64_t next_count();
  void keep_rows(std::span<const std::int32_t> ids, std::size_t row_bytes);
  void check_rows(std::span<const std::int32_t> ids) const;

  VariableSpec spec_;
  std::vector<SlotSpec> slot_specs_;
  Tensor value_;
  std::vector<Tensor> slots_;       // in the order of slots_of
  std::vector<float*> full_slots_;  // those as large as the variable
  std::int64_t* count_ = nullptr;   // the scalar slot, if there is one
  std::unique_ptr<CopyOnWriteSnapshot> snapshot_;
};

}  // namespace paceline
