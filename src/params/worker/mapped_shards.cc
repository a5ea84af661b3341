// On one host a shard's values lie in shared memory that workers map read-only, and the shard reads
// a worker's contributions where they lie: only headers go over the link. A variable that is split
// over several ps tasks is cut between pages, if its rows allow, and its pieces are mapped into one
// range of addresses; otherwise the worker puts it together from frames.
//
// An asynchronous reader may see some elements before and some after another worker's update. If
// others may contribute in the middle of a step, a variable that more than one kernel of the step
// reads is read in a copy, since forward and backward kernels must see one value. When it was read
// in place, another worker's update fell between the two in each step, and ptb with two workers and
// learning rate 1 ended at perplexity 640, not 115. The ps keeps the copy for this worker alone and
// writes it in the pass that applies the worker's contribution, while the new values are in a
// cache: so the worker sees what it would see in frames.
#include "params/worker/mapped_shards.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/row_count.h"
#include "paceline/error.h"
#include "params/shard/layout.h"
#include "params/variable_arrays.h"

namespace paceline {

static_assert(kSplitPageBytes == ContiguousMapping::kPageBytes,
              "variables are cut where parts of them can be mapped");

MappedShards::MappedShards(std::span<const VariableSpec> variables, std::span<const Piece> pieces,
                           int num_ps)
    : variables_(variables),
      pieces_(pieces),
      counts_(variables.size()),
      memories_(std::size_t(num_ps)),
      joined_(variables.size()),
      mapped_(variables.size()) {
  for (const Piece& piece : pieces_) ++counts_[std::size_t(piece.variable)];
}

void MappedShards::map(int ps, std::shared_ptr<const SharedMemory> memory) {
  const ShardLayout layout = shard_layout(variables_, pieces_, ps);
  if (memory->size() < layout.bytes) {
    throw Error(ErrorCode::kDataLoss, fmt::format("[store] {} bytes are shared for values of {}",
                                                  memory->size(), layout.bytes));
  }
  const std::lock_guard lock(mutex_);
  if (memories_[std::size_t(ps)] != nullptr) {
    throw Error(ErrorCode::kDataLoss, fmt::format("[store] ps:{} shares its memory twice", ps));
  }
  for (const Piece& piece : pieces_) {
    const std::size_t v = std::size_t(piece.variable);
    if (piece.ps != ps) continue;
    const std::byte* const start = memory->bytes().data();
    if (counts_[v] == 1) {
      mapped_[v] = start + layout.offsets[piece.id];
    } else if (can_be_joined(variables_, pieces_, piece.variable)) {
      map_part(piece, memory, layout.offsets[piece.id]);
    }
  }
  memories_[std::size_t(ps)] = std::move(memory);
}

// It is there as a whole when all of its ps tasks are on this host.
void MappedShards::map_part(const Piece& piece, const std::shared_ptr<const SharedMemory>& memory,
                            std::size_t offset) {
  const std::size_t v = std::size_t(piece.variable), row = row_bytes(variables_[v]);
  Joined& joined = joined_[v];
  if (joined.memory == nullptr) {
    joined.memory =
        std::make_unique<ContiguousMapping>(std::size_t(row_count(variables_[v].shape)) * row);
  }
  joined.memory->map(std::size_t(piece.first_row) * row, memory, offset,
                     piece_bytes(variables_[v], piece));
  if (++joined.pieces == counts_[v]) mapped_[v] = joined.memory->data();
}

}  // namespace paceline
