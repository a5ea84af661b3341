#include "base/philox.h"

namespace paceline {

std::uint64_t random_key(std::uint64_t seed, std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325 ^ seed * 0x9E3779B97F4A7C15;
  for (char c : name) hash = (hash ^ std::uint8_t(c)) * 0x100000001b3;
  hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccd;
  return hash ^ (hash >> 33);
}

}  // namespace paceline
