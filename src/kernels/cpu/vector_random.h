// The random words of a stream (Philox, base/philox.h), several blocks at once.
#pragma once

#include <cstdint>

#include "kernels/random_stream.h"

namespace paceline {

/// So many blocks at a time are written, some perhaps behind those that were asked for.
constexpr std::int64_t kRandomBlocksAtOnce = 16;

/// The words of `blocks` blocks from block `first` on: words[4·i + k] = stream.block(first + i)[k].
/// `words` has room for a multiple of kRandomBlocksAtOnce blocks.
void vector_random_words(const RandomStream& stream, std::int64_t first, std::int64_t blocks,
                         std::uint32_t* words);

}  // namespace paceline
