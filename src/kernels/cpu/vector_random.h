// The random words of a stream (Philox, base/philox.h), computed several blocks at once.
#pragma once

#include <cstdint>

#include "kernels/random_stream.h"

namespace paceline {

/// This many blocks are written at a time, some perhaps beyond the requested ones.
constexpr std::int64_t kRandomBlocksAtOnce = 16;

/// Writes the words of `blocks` blocks, starting at block `first`: words[4·i + k] =
/// stream.block(first + i)[k]. `words` has room for a multiple of kRandomBlocksAtOnce blocks.
void vector_random_words(const RandomStream& stream, std::int64_t first, std::int64_t blocks,
                         std::uint32_t* words);

/// Computes y = x · factor where to_unit_float(words) < keep, else 0.
void vector_drop(const std::uint32_t* words, float keep, float factor, const float* x, float* y,
                 std::int64_t n);

}  // namespace paceline
