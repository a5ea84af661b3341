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

/// Returns how all variables are laid out in files: each piece is in the file of its ps.
std::vector<SavedVariable> saved_variables(std::span<const VariableSpec> variables,
                                           std::span<const Piece> pieces, int shards);

/// Reads bytes of an array of a piece, as they were when the piece was marked
/// (CopyOnWriteSnapshot::read).
using ReadMoment = std::function<std::span<const std::byte>(const Piece& piece, std::size_t array,
                                                            std::size_t offset, std::size_t bytes)>;

/// Writes the pieces of ps `shard` to the file `path`. `shards` may be any number above `shard`,
/// since the file does not hold it. Calls `read` for at most kSavedAtOnce bytes at a time; array 0
/// is a value, 1 + s is slot s. Throws as SafetensorsWriter does.
WrittenFile write_shard(const std::string& path, std::span<const VariableSpec> variables,
                        std::span<const Piece> pieces, int shard, int shards,
                        const ReadMoment& read);
constexpr std::size_t kSavedAtOnce = std::size_t{1} << 20;

/// Lowers the priority of the calling thread, so that it gives way to the threads that train.
void run_in_background();

}  // namespace paceline
