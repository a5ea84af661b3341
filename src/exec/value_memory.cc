#include "exec/value_memory.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <numeric>
#include <vector>

#include "base/buffer.h"
#include "base/check.h"
#include "exec/plan_roots.h"
#include "graph/sources.h"
#include "graph/views.h"
#include "paceline/op.h"

namespace paceline {
namespace {

/// Ranges of bytes [begin, end), in order; ranges that touch or overlap become one.
class ByteRanges {
 public:
  struct Range {
    std::size_t begin = 0, end = 0;
  };
  explicit ByteRanges(std::pmr::memory_resource* memory = std::pmr::get_default_resource())
      : ranges_(memory) {}
  void add(Range range);
  /// Returns the first range that ends above `offset`; null if there is none.
  const Range* first_above(std::size_t offset) const;

 private:
  std::pmr::vector<Range> ranges_;
};

/// Tracks which bytes of an arena are taken at each position of a schedule, in a tree over the
/// positions. Buffers that lie close together become few ranges in each node. So a search visits a
/// number of nodes that grows with the logarithm of the number of positions, not with the number of
/// buffers.
class OccupiedMemory {
 public:
  /// The positions [first, last]; both are included.
  struct Positions {
    int first = 0, last = 0;
  };
  explicit OccupiedMemory(Positions all);
  void take(Positions alive, ByteRanges::Range bytes);
  /// Returns the lowest offset at which this many bytes are free in all of these positions.
  std::size_t lowest_free(Positions alive, std::size_t bytes);
  /// The number of searches in the ranges of a node, as a measure of the work.
  std::int64_t looks() const { return looks_; }

 private:
  struct Node {
    explicit Node(std::pmr::memory_resource* memory) : somewhere(memory), everywhere(memory) {}
    // Bytes taken in some of the node's positions.
    ByteRanges somewhere;
    // Bytes taken in all of the node's positions, each range by one buffer.
    ByteRanges everywhere;
  };
  struct Place {
    std::size_t node = 0;
    Positions of;
  };
  Place root() const { return {1, all_}; }
  static Place left(const Place& place);
  static Place right(const Place& place);
  void take_in(const Place& place, Positions alive, ByteRanges::Range bytes);
  void collect(const Place& place, Positions alive, std::vector<const ByteRanges*>& taken) const;

  Positions all_;
  std::pmr::monotonic_buffer_resource memory_;  // memory for the ranges of all nodes
  std::vector<Node> nodes_;                     // the children of node i are 2i and 2i + 1
  std::int64_t looks_ = 0;
};

bool apart(const OccupiedMemory::Positions& a, const OccupiedMemory::Positions& b) {
  return a.first > b.last || b.first > a.last;
}

bool covers(const OccupiedMemory::Positions& a, const OccupiedMemory::Positions& b) {
  return a.first <= b.first && b.last <= a.last;
}

void ByteRanges::add(Range range) {
  const auto first = std::ranges::lower_bound(ranges_, range.begin, {}, &Range::end);
  const auto last = std::ranges::upper_bound(ranges_, range.end, {}, &Range::begin);
  if (first == last) {
    ranges_.insert(first, range);
    return;
  }
  first->begin = std::min(first->begin, range.begin);
  first->end = std::max(std::prev(last)->end, range.end);
  ranges_.erase(std::next(first), last);
}

const ByteRanges::Range* ByteRanges::first_above(std::size_t offset) const {
  const auto found = std::ranges::upper_bound(ranges_, offset, {}, &Range::end);
  return found == ranges_.end() ? nullptr : &*found;
}

OccupiedMemory::OccupiedMemory(Positions all) : all_(all) {
  const std::size_t nodes = 2 * std::bit_ceil(std::size_t(all.last - all.first) + 1);
  nodes_.reserve(nodes);
  for (std::size_t i = 0; i < nodes; ++i) nodes_.emplace_back(&memory_);
}

OccupiedMemory::Place OccupiedMemory::left(const Place& place) {
  return {2 * place.node, {place.of.first, std::midpoint(place.of.first, place.of.last)}};
}

OccupiedMemory::Place OccupiedMemory::right(const Place& place) {
  return {2 * place.node + 1, {std::midpoint(place.of.first, place.of.last) + 1, place.of.last}};
}

void OccupiedMemory::take(Positions alive, ByteRanges::Range bytes) {
  take_in(root(), alive, bytes);
}

void OccupiedMemory::take_in(const Place& place, Positions alive, ByteRanges::Range bytes) {
  if (apart(place.of, alive)) return;
  Node& node = nodes_[place.node];
  node.somewhere.add(bytes);
  if (covers(alive, place.of)) return node.everywhere.add(bytes);
  take_in(left(place), alive, bytes);
  take_in(right(place), alive, bytes);
}

std::size_t OccupiedMemory::lowest_free(Positions alive, std::size_t bytes) {
  std::vector<const ByteRanges*> taken;
  collect(root(), alive, taken);
  std::size_t offset = 0;
  // The loop ends once the offset has stayed where it is for a whole round of lists.
  for (std::size_t i = 0, stayed = 0; stayed < taken.size(); i = (i + 1) % taken.size()) {
    ++looks_;
    const ByteRanges::Range* range = taken[i]->first_above(offset);
    const bool fits = range == nullptr || range->begin >= offset + bytes;
    stayed = fits ? stayed + 1 : 0;
    if (!fits) offset = range->end;
  }
  return offset;
}

void OccupiedMemory::collect(const Place& place, Positions alive,
                             std::vector<const ByteRanges*>& taken) const {
  if (apart(place.of, alive)) return;
  const Node& node = nodes_[place.node];
  if (covers(alive, place.of)) return taken.push_back(&node.somewhere);
  taken.push_back(&node.everywhere);
  collect(left(place), alive, taken);
  collect(right(place), alive, taken);
}

std::size_t footprint(const ArenaBuffer& buffer) {
  return round_up(std::max<std::size_t>(buffer.bytes, 1), kBufferAlignment);
}

OccupiedMemory::Positions positions_of(std::span<const ArenaBuffer> buffers) {
  OccupiedMemory::Positions all;
  for (const ArenaBuffer& buffer : buffers) {
    all.first = std::min(all.first, buffer.first);
    all.last = std::max(all.last, buffer.last);
  }
  return all;
}

}  // namespace

ArenaLayout lay_out_arena(std::span<const ArenaBuffer> buffers) {
  std::vector<std::size_t> by_size(buffers.size());
  std::iota(by_size.begin(), by_size.end(), std::size_t{0});
  std::ranges::stable_sort(by_size, [&](std::size_t a, std::size_t b) {
    return footprint(buffers[a]) > footprint(buffers[b]);
  });

  ArenaLayout layout{std::vector<std::size_t>(buffers.size())};
  OccupiedMemory taken(positions_of(buffers));
  for (const std::size_t i : by_size) {
    const OccupiedMemory::Positions alive = {buffers[i].first, buffers[i].last};
    const std::size_t offset = taken.lowest_free(alive, footprint(buffers[i]));
    const std::size_t end = offset + footprint(buffers[i]);
    taken.take(alive, {offset, end});
    layout.offsets[i] = offset;
    layout.bytes = std::max(layout.bytes, end);
  }
  layout.looks = taken.looks();
  return layout;
}

ValueMemory::ValueMemory(const Graph& graph, const NodeOrder& order, const VariableIds& variables)
    : order_(order), slots_of_values_(graph), positions_(graph.nodes().size(), -1) {
  for (std::size_t i = 0; i < order.nodes.size(); ++i) {
    positions_[std::size_t(order.nodes[i]->id())] = int(i);
  }
  add_values(graph, variables);
  count_reads();
}

SlotIndex ValueMemory::slot(const Value& value) const { return slots_of_values_[value]; }

SlotIndex ValueMemory::add(const ValueType& type, Storage storage, int written) {
  storage.bytes = type.bytes();
  storages_.push_back(std::move(storage));
  lives_.push_back({.first_write = written, .last_write = written});
  taken_from_.push_back(-1);
  slots_.push_back({type, int(storages_.size()) - 1});
  return SlotIndex(slots_.size()) - 1;
}

SlotIndex ValueMemory::add_kept(const ValueType& type, int position) {
  const SlotIndex slot = add(type, {}, position);
  read_at(slots_[std::size_t(slot)].storage, end());
  return slot;
}

void ValueMemory::add_source(const Node& node, const VariableIds& variables) {
  Storage storage;
  const std::string& op = node.op().name;
  if (op == "variable") {
    storage.kind = Storage::Kind::kVariable;
    storage.variable = variables.of(node);
  } else if (op == "local") {
    storage.kind = Storage::Kind::kLocal;
    storage.name = node.name();
  } else if (op == "constant") {
    storage.kind = Storage::Kind::kConstant;
    storage.constant = node.attributes().get<Tensor>("value");
  } else {
    storage.kind = Storage::Kind::kInput;
  }
  slots_of_values_[node.output(0)] = add(node.outputs()[0], std::move(storage), -1);
}

void ValueMemory::add_values(const Graph& graph, const VariableIds& variables) {
  for (const auto& node : graph.nodes()) {
    if (is_source(*node)) {
      add_source(*node, variables);
    } else if (is_view(*node)) {
      const Slot in = slots_[std::size_t(slot(node->input(0)))];
      for (int i = 0; i < int(node->outputs().size()); ++i) {
        slots_.push_back(
            {node->outputs()[std::size_t(i)], in.storage, in.offset + view_offset(*node, i)});
        slots_of_values_[node->output(i)] = SlotIndex(slots_.size()) - 1;
      }
    } else {
      for (int i = 0; i < int(node->outputs().size()); ++i) {
        const Value output = node->output(i);
        slots_of_values_[output] = add_output(output, positions_[std::size_t(node->id())]);
      }
    }
  }
}

// A part of a join lies in the memory of the joined tensor, which is added with the first part.
SlotIndex ValueMemory::add_output(const Value& value, int written) {
  const ConcatPlacement::Place part = order_.parts.place_of(value);
  const bool joins = order_.parts.joins(value.node());
  if (part.join == nullptr && !joins) return add(value.type(), {}, written);
  const Node& whole = part.join == nullptr ? value.node() : *part.join;
  const auto [known, is_new] = slots_of_joins_.insert({&whole, SlotIndex(slots_.size())});
  if (is_new) add(whole.outputs()[0], {}, written);
  if (part.join == nullptr) return known->second;
  const int storage = slots_[std::size_t(known->second)].storage;
  if (!joins) {
    Life& life = lives_[std::size_t(storage)];
    life.first_write = std::min(life.first_write, written);
    life.last_write = std::max(life.last_write, written);
  }
  slots_.push_back({value.type(), storage, part.offset});
  return SlotIndex(slots_.size()) - 1;
}

bool ValueMemory::is_whole(const Value& value) const {
  return value.type().bytes() == storage(storage_of(value)).bytes;
}

void ValueMemory::count_reads() {
  for (std::size_t i = 0; i < order_.nodes.size(); ++i) {
    for (const Value& input : order_.nodes[i]->inputs()) read_at(storage_of(input), int(i));
  }
}

void ValueMemory::read_at(int storage, int position) {
  Life& life = lives_[std::size_t(storage)];
  life.first_read = std::min(life.first_read, position);
  life.last_read = std::max(life.last_read, position);
}

void ValueMemory::give_place(int storage, VariableId variable) {
  Storage& place = storages_[std::size_t(storage)];
  PACELINE_CHECK(place.kind == Storage::Kind::kArena);
  place.kind = Storage::Kind::kPlace;
  place.variable = variable;
}

// The op says which inputs its kernel may overwrite with the output. If another input used the same
// memory, the kernel could read that memory after it was overwritten.
bool ValueMemory::may_take(const Node& node, int position, int input) const {
  const Value& value = node.input(input);
  const int taken = storage_of(value);
  if (storage(taken).kind != Storage::Kind::kArena || !is_whole(value)) return false;
  if (life(taken).last() != position) return false;
  if (value.type().bytes() != node.outputs()[0].bytes()) return false;
  if (value.type().dtype != node.outputs()[0].dtype) return false;
  const auto& allowed = node.op().in_place;
  for (std::size_t i = 0; i < node.inputs().size(); ++i) {
    if (storage_of(node.input(int(i))) != taken) continue;
    if (node.input(int(i)) != value || std::ranges::count(allowed, int(i)) == 0) return false;
  }
  return true;
}

void ValueMemory::share_in_place() {
  for (std::size_t i = 0; i < order_.prologue; ++i) {
    const Node& node = *order_.nodes[i];
    for (int k = 0; k < int(node.outputs().size()); ++k) read_at(storage_of(node.output(k)), end());
  }
  for (std::size_t i = 0; i < order_.nodes.size(); ++i) {
    const Node& node = *order_.nodes[i];
    const int output = storage_of(node.output(0));
    if (storage(output).kind != Storage::Kind::kArena || !is_whole(node.output(0))) continue;
    for (const int input : node.op().in_place) {
      if (input >= int(node.inputs().size()) || !may_take(node, int(i), input)) continue;
      taken_from_[std::size_t(output)] = buffer_of(storage_of(node.input(input)));
      break;
    }
  }
}

int ValueMemory::buffer_of(int storage) const {
  const int taken_from = taken_from_[std::size_t(storage)];
  return taken_from < 0 ? storage : taken_from;
}

void ValueMemory::lay_out(Plan& plan) {
  lay_out_inputs(plan);
  lay_out_arena_of(plan);
  plan.storages = std::move(storages_);
  plan.slots = std::move(slots_);
}

void ValueMemory::lay_out_inputs(Plan& plan) {
  for (Storage& storage : storages_) {
    if (storage.kind != Storage::Kind::kInput) continue;
    storage.offset = plan.input_bytes;
    plan.input_bytes += round_up(std::max<std::size_t>(storage.bytes, 1), kBufferAlignment);
  }
}

// Storages that reuse each other's memory form one buffer, which lives from the first use to the
// last.
std::vector<ArenaBuffer> ValueMemory::shared_buffers(std::vector<std::size_t>& index) const {
  std::vector<ArenaBuffer> buffers;
  index.assign(storages_.size(), storages_.size());
  for (std::size_t s = 0; s < storages_.size(); ++s) {
    if (storages_[s].kind != Storage::Kind::kArena) continue;
    std::size_t& buffer = index[std::size_t(buffer_of(int(s)))];
    if (buffer == storages_.size()) {
      buffer = buffers.size();
      buffers.push_back({storages_[s].bytes, lives_[s].first_write, lives_[s].last()});
    }
    index[s] = buffer;
    buffers[buffer].first = std::min(buffers[buffer].first, lives_[s].first_write);
    buffers[buffer].last = std::max(buffers[buffer].last, lives_[s].last());
  }
  return buffers;
}

void ValueMemory::lay_out_arena_of(Plan& plan) {
  std::vector<std::size_t> index;
  std::vector<ArenaBuffer> buffers = shared_buffers(index);
  const std::size_t values = buffers.size();
  for (std::size_t k = 0; k < plan.kernels.size(); ++k) {
    if (plan.kernels[k].scratch_bytes == 0) continue;
    const bool prologue = k < order_.prologue;
    buffers.push_back({plan.kernels[k].scratch_bytes, int(k), prologue ? end() : int(k)});
  }
  const ArenaLayout layout = lay_out_arena(buffers);
  for (std::size_t s = 0; s < storages_.size(); ++s) {
    if (storages_[s].kind == Storage::Kind::kArena) storages_[s].offset = layout.offsets[index[s]];
  }
  std::size_t next = values;
  for (Plan::KernelUse& use : plan.kernels) {
    if (use.scratch_bytes > 0) use.scratch_offset = layout.offsets[next++];
  }
  plan.arena_bytes = layout.bytes;
}

}  // namespace paceline
