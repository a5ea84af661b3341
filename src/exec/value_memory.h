// Decides which memory each value of a scheduled graph lives in, and for how long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <vector>

#include "exec/node_order.h"
#include "exec/plan.h"
#include "graph/by_value.h"

namespace paceline {

/// A buffer that is alive from position `first` to `last` of the schedule, both included.
struct ArenaBuffer {
  std::size_t bytes = 0;
  int first = 0, last = 0;
};

struct ArenaLayout {
  std::vector<std::size_t> offsets;  // by buffer; multiples of kBufferAlignment
  std::size_t bytes = 0;
  std::int64_t looks = 0;  // the number of searches among taken ranges, as a measure of the work
};

/// Lays out buffers that are not all alive at the same time in one arena. Places the largest first,
/// each at the lowest offset where it meets no buffer that is alive with it. No two buffers share
/// an offset while both are alive, not even empty ones.
ArenaLayout lay_out_arena(std::span<const ArenaBuffer> buffers);

/// A position is an index into the nodes of the order; position end() follows the last one.
class ValueMemory {
 public:
  struct Life {
    // The positions of the first and the last node that write the storage, or parts of it; −1 if it
    // exists before the step.
    int first_write = -1, last_write = -1;
    int first_read = std::numeric_limits<int>::max();
    int last_read = -1;
    bool is_read() const { return last_read >= 0; }
    int last() const { return std::max(last_write, last_read); }
  };

  ValueMemory(const Graph& graph, const NodeOrder& order, const VariableIds& variables);

  int end() const { return int(order_.nodes.size()); }
  SlotIndex slot(const Value& value) const;
  int storage_of(const Value& value) const { return slots_[std::size_t(slot(value))].storage; }
  const Storage& storage(int index) const { return storages_[std::size_t(index)]; }
  const Life& life(int index) const { return lives_[std::size_t(index)]; }

  /// True if the value is all of its storage, not a part.
  bool is_whole(const Value& value) const;

  /// Notes that the storage is read at `position`: by the node there, or by something else before
  /// that node runs.
  void read_at(int storage, int position);
  /// Makes the storage the place of a contribution.
  void give_place(int storage, VariableId variable);
  SlotIndex add(const ValueType& type, Storage storage, int written);
  /// Adds an arena value that is written at `position` and read until the end.
  SlotIndex add_kept(const ValueType& type, int position);

  /// Once all reads are known, lets outputs take over the memory of inputs that are not read again.
  /// Memory that the order's prologue writes is never shared.
  void share_in_place();
  /// Lays out the inputs and the arena, including the scratch of plan.kernels. Storages and slots
  /// move into the plan.
  void lay_out(Plan& plan);

 private:
  void add_source(const Node& node, const VariableIds& variables);
  void add_values(const Graph& graph, const VariableIds& variables);
  SlotIndex add_output(const Value& value, int written);
  void count_reads();
  bool may_take(const Node& node, int position, int input) const;
  int buffer_of(int storage) const;
  void lay_out_inputs(Plan& plan);
  void lay_out_arena_of(Plan& plan);
  std::vector<ArenaBuffer> shared_buffers(std::vector<std::size_t>& index) const;

  const NodeOrder& order_;
  ByValue<SlotIndex> slots_of_values_;
  std::vector<int> positions_;  // by node id
  std::map<const Node*, SlotIndex> slots_of_joins_;
  std::vector<Slot> slots_;
  std::vector<Storage> storages_;
  std::vector<Life> lives_;
  // By storage: the first storage whose memory it takes over; −1 if the memory is its own.
  std::vector<int> taken_from_;
};

}  // namespace paceline
