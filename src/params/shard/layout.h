// The layout of the memory that a ps shares with the workers of its host.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "exec/parameter_store.h"
#include "params/protocol/placement.h"

namespace paceline {

/// The pieces lie one after the other, each at a multiple of 64 bytes. If a piece of a split
/// variable begins at a page of the variable, it begins at a page here, too. The layout depends on
/// the arguments only, so that both sides of shared memory agree.
struct ShardLayout {
  std::vector<std::size_t> offsets;  // by piece id; valid for pieces on this ps
  std::size_t bytes = 0;
};
ShardLayout shard_layout(std::span<const VariableSpec> variables, std::span<const Piece> pieces,
                         int ps);

}  // namespace paceline
