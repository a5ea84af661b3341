#include "params/wire/rounded_floats.h"

#include "kernels/cpu/vector_cast.h"

namespace paceline {

void round_to(std::span<float> values, float* errors, std::byte* to) {
  auto* const rounded = reinterpret_cast<BFloat16*>(to);
  const auto n = std::int64_t(values.size());
  if (errors == nullptr) return vector_cast(values.data(), rounded, n);
  vector_cast_with_errors(values.data(), errors, rounded, n);
}

std::span<const std::byte> round_in_place(std::span<std::byte> floats, float* errors) {
  round_to({reinterpret_cast<float*>(floats.data()), floats.size() / sizeof(float)}, errors,
           floats.data());
  return floats.first(floats.size() / 2);
}

std::span<std::byte> place_of_rounded(std::span<std::byte> floats) {
  return floats.subspan(floats.size() / 2);
}

void widen_in_place(std::span<std::byte> floats) {
  const std::span<std::byte> rounded = place_of_rounded(floats);
  vector_cast(reinterpret_cast<const BFloat16*>(rounded.data()),
              reinterpret_cast<float*>(floats.data()), std::int64_t(floats.size() / sizeof(float)));
}

}  // namespace paceline
