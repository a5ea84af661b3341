// Variables as a checkpoint holds them.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_index.h"
#include "checkpoint/safetensors_writer.h"
#include "params/protocol/placement.h"

namespace paceline {

/// The layout of all variables in files: each piece is in the file of the ps that has it.
std::vector<SavedVariable> saved_variables(std::span<const VariableSpec> variables,
                                           std::span<const Piece> pieces, int shards);

/// The bytes of an array of a piece, as read of its moment: CopyOnWriteSnapshot::read.
using ReadMoment = std::function<std::span<const std::byte>(const Piece& piece, std::size_t array,
                                                            std::size_t offset, std::size_t bytes)>;

/// Writes one shard: `path` ends with its shard_name. Array 0 is a value, 1 + s slot s; at most
/// kSavedAtOnce bytes are read at a time. Throws as SafetensorsWriter does.
WrittenFile write_shard(const std::string& path, std::span<const VariableSpec> variables,
                        std::span<const Piece> pieces, int shard, int shards,
                        const ReadMoment& read);
constexpr std::size_t kSavedAtOnce = std::size_t{1} << 20;

/// The calling thread gives way to the threads that train.
void run_in_background();

}  // namespace paceline
