#include "params/wire/largest_numbers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace paceline {
namespace {

struct Candidate {
  float size = -1;
  std::uint8_t place = 0;
};

float size_of_number(float value) {
  return std::isfinite(value) ? std::abs(value) : std::numeric_limits<float>::infinity();
}

/// Some numbers of a block, the largest first.
class Largest {
 public:
  explicit Largest(std::size_t most) : most_(most) {}

  void add(float size, std::size_t place) {
    if (count_ == most_ && size <= kept_[count_ - 1].size) return;
    std::size_t at = count_ < most_ ? count_++ : count_ - 1;
    for (; at > 0 && kept_[at - 1].size < size; --at) kept_[at] = kept_[at - 1];
    kept_[at] = {size, std::uint8_t(place)};
  }
  /// Returns the places of the kept numbers, in ascending order.
  std::span<const std::uint8_t> places() {
    for (std::size_t i = 0; i < count_; ++i) places_[i] = kept_[i].place;
    std::sort(places_.begin(), places_.begin() + std::ptrdiff_t(count_));
    return std::span(places_).first(count_);
  }

 private:
  std::size_t most_, count_ = 0;
  std::array<Candidate, kScaledBlock> kept_;
  std::array<std::uint8_t, kScaledBlock> places_{};
};

// Writes a number in the type in which it travels, and returns the number that arrives. A number
// beyond the largest float16 becomes the largest float16.
template <typename T>
float put(std::byte* to, float value) {
  const bool clamped = std::is_same_v<T, Float16> && std::isfinite(value);
  const T travels(clamped ? std::clamp(value, -kLargestFloat16, kLargestFloat16) : value);
  std::memcpy(to, &travels, sizeof(T));
  return float(travels);
}

template <typename T>
float get(const std::byte* from) {
  T travels;
  std::memcpy(&travels, from, sizeof(T));
  return float(travels);
}

// True when the last block has so few numbers that all of them travel, without their places.
template <typename T>
bool travels_whole(std::size_t numbers, std::size_t kept) {
  return numbers * sizeof(T) <= kept * (1 + sizeof(T));
}

template <typename T>
std::size_t keep_largest_as(std::span<const std::byte> floats, std::size_t kept, float* errors,
                            std::byte* const begin) {
  const std::size_t all = floats.size() / sizeof(float);
  std::byte* to = begin;
  for (std::size_t first = 0; first < all; first += kScaledBlock) {
    const std::size_t n = std::min(kScaledBlock, all - first);
    std::array<float, kScaledBlock> block;
    std::memcpy(block.data(), floats.data() + first * sizeof(float), n * sizeof(float));
    for (std::size_t i = 0; errors != nullptr && i < n; ++i) block[i] += errors[first + i];
    const bool whole = travels_whole<T>(n, kept);
    Largest largest(whole ? n : kept);
    for (std::size_t i = 0; i < n; ++i) largest.add(size_of_number(block[i]), i);
    const std::span<const std::uint8_t> places = largest.places();
    if (!whole) {
      std::memcpy(to, places.data(), places.size());
      to += places.size();
    }
    for (const std::uint8_t place : places) {
      const float error = block[place] - put<T>(to, block[place]);
      block[place] = std::isfinite(error) ? error : 0;
      to += sizeof(T);
    }
    if (errors != nullptr) std::copy_n(block.data(), n, errors + first);
  }
  return std::size_t(to - begin);
}

// Works in place, from the first block to the last. A block takes no more bytes when it travels
// than as float32, so its float32 numbers never overwrite the travelling bytes of a later block.
template <typename T>
void spread_largest_as(std::span<std::byte> floats, const ContributionForm& form) {
  const std::size_t all = floats.size() / sizeof(float);
  const std::byte* from = floats.last(travelling_bytes(floats.size(), form)).data();
  for (std::size_t first = 0; first < all; first += kScaledBlock) {
    const std::size_t n = std::min(kScaledBlock, all - first);
    const bool whole = travels_whole<T>(n, std::size_t(form.kept));
    const std::size_t count = whole ? n : std::size_t(form.kept);
    const std::byte* const values = whole ? from : from + count;
    std::array<float, kScaledBlock> block{};
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t place = whole ? i : std::min(std::size_t(from[i]), n - 1);
      block[place] = get<T>(values + i * sizeof(T));
    }
    from = values + count * sizeof(T);
    std::memcpy(floats.data() + first * sizeof(float), block.data(), n * sizeof(float));
  }
}

}  // namespace

std::size_t keep_largest(std::span<const std::byte> floats, const ContributionForm& form,
                         float* errors, std::byte* to) {
  const auto kept = std::size_t(form.kept);
  if (form.type == DType::kBFloat16) return keep_largest_as<BFloat16>(floats, kept, errors, to);
  if (form.type == DType::kFloat16) return keep_largest_as<Float16>(floats, kept, errors, to);
  return keep_largest_as<float>(floats, kept, errors, to);
}

void spread_largest(std::span<std::byte> floats, const ContributionForm& form) {
  if (form.type == DType::kBFloat16) return spread_largest_as<BFloat16>(floats, form);
  if (form.type == DType::kFloat16) return spread_largest_as<Float16>(floats, form);
  spread_largest_as<float>(floats, form);
}

}  // namespace paceline
