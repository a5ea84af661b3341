// A number that tells byte strings apart: 64-bit FNV-1a (Fowler, Noll and Vo). An attacker can make
// two strings with the same number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace paceline {

constexpr std::uint64_t fingerprint_of(std::span<const std::byte> bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::byte byte : bytes) hash = (hash ^ std::uint64_t(byte)) * 0x100000001b3;
  return hash;
}

}  // namespace paceline
