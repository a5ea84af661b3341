// Memory that the ps tasks of this host share with a worker, variable by variable.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "exec/parameter_store.h"
#include "net/memory/contiguous_mapping.h"
#include "params/protocol/placement.h"

namespace paceline {

/// One memory of each ps, laid out as shard_layout says.
class MappedShards {
 public:
  /// The arguments must outlive it.
  MappedShards(std::span<const VariableSpec> variables, std::span<const Piece> pieces, int num_ps);

  /// Maps the memory of a ps, from any thread, before its pieces are used. Throws kDataLoss when
  /// the memory is too small for them, or when that ps has shared such memory before.
  void map(int ps, std::shared_ptr<const SharedMemory> memory);
  /// Returns the whole variable; null when it has no place there, or when its pieces cannot be put
  /// one after the other.
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
  std::vector<std::size_t> counts_;  // of pieces, by variable
  std::mutex mutex_;
  std::vector<std::shared_ptr<const SharedMemory>> memories_;  // by ps
  std::vector<Joined> joined_;                         // of variables that are split, by variable
  std::vector<std::atomic<const std::byte*>> mapped_;  // by variable
};

}  // namespace paceline
