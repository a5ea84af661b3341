// Counter-based random numbers: a pure function of key and counter, the same on every thread,
// device and run. Philox4x32-10 of Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3",
// SC 2011.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>

namespace paceline {

using PhiloxBlock = std::array<std::uint32_t, 4>;

/// Returns four random words for a 64-bit key and a 128-bit counter.
inline PhiloxBlock philox(std::uint64_t key, std::uint64_t counter_low,
                          std::uint64_t counter_high) {
  std::uint32_t k0 = std::uint32_t(key), k1 = std::uint32_t(key >> 32);
  PhiloxBlock c = {std::uint32_t(counter_low), std::uint32_t(counter_low >> 32),
                   std::uint32_t(counter_high), std::uint32_t(counter_high >> 32)};
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * c[2];
    c = {std::uint32_t(p1 >> 32) ^ c[1] ^ k0, std::uint32_t(p1),
         std::uint32_t(p0 >> 32) ^ c[3] ^ k1, std::uint32_t(p0)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

/// Makes a number, uniform in [0, 1), of the upper 24 bits of a random word.
inline float to_unit_float(std::uint32_t word) { return float(word >> 8) * 0x1p-24f; }

/// Makes a number, uniform in [low, high), of a random word. Rounding never reaches high, unless
/// low equals high.
template <typename T>
T to_uniform(std::uint32_t word, T low, T high) {
  const T value = low + (high - low) * T(to_unit_float(word));
  return value < high || low == high ? value : std::nextafter(high, low);
}

/// Two independent standard normal numbers from two words (Box & Muller, "A Note on the Generation
/// of Random Normal Deviates", 1958). Their absolute values are at most 5.8.
template <typename T>
struct NormalPair {
  T first, second;
};
template <typename T>
NormalPair<T> to_normal_pair(std::uint32_t a, std::uint32_t b) {
  const T radius = std::sqrt(T(-2) * std::log(T(1) - T(to_unit_float(a))));
  const T angle = T(2) * std::numbers::pi_v<T> * T(to_unit_float(b));
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

/// Makes a 64-bit key of a seed and a name (FNV-1a, then a finaliser), so that streams of different
/// names differ.
std::uint64_t random_key(std::uint64_t seed, std::string_view name);

}  // namespace paceline
