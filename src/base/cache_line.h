// A cache line is the unit of memory that two cores cannot write at once without taking it from
// each other.
#pragma once

#include <cstddef>

namespace paceline {

/// The bytes of a cache line on all x86-64 processors. Rings of shared memory are laid out by it
/// (docs/wire.md).
inline constexpr std::size_t kCacheLine = 64;

}  // namespace paceline
