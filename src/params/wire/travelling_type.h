// The types in which float32 numbers travel between hosts (--wire), and the bytes that they take.
// Arithmetic only.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "paceline/tensor.h"

namespace paceline {

/// The numbers of a block. With kUInt8, the numbers of a block share one scale.
inline constexpr std::size_t kScaledBlock = 256;
inline constexpr std::size_t kScaleBytes = sizeof(BFloat16);
inline constexpr float kLargestFloat16 = 65504;

struct TravellingType {
  std::string_view name;  // of --wire
  DType type;
};

/// float32; bfloat16 and float16, both rounded to nearest even; and int8. With int8, contributions
/// travel as signed bytes with a scale for each block, and values as bfloat16. A message names a
/// type by its index in this list.
inline constexpr std::array<TravellingType, 4> kTravellingTypes = {{{"float32", DType::kFloat32},
                                                                    {"bfloat16", DType::kBFloat16},
                                                                    {"float16", DType::kFloat16},
                                                                    {"int8", DType::kUInt8}}};

inline std::string_view travelling_name(DType type) {
  for (const TravellingType& each : kTravellingTypes) {
    if (each.type == type) return each.name;
  }
  return "";
}

/// Returns the type in which values travel if contributions travel as `type`. Values do not travel
/// as int8: with error feedback the next contribution makes up for the error of the previous one,
/// but nothing makes up for the error of a value.
inline DType type_of_values(DType type) { return type == DType::kUInt8 ? DType::kBFloat16 : type; }

/// The form in which contributions travel: the type of their numbers, and how many numbers of each
/// block of kScaledBlock travel. Only the `kept` largest numbers of a block travel if these, with
/// their places, take fewer bytes than all its numbers. (Lin et al., "Deep Gradient Compression",
/// ICLR 2018, keep the largest of a whole tensor.)
struct ContributionForm {
  // Implicit: a type is a form that keeps all numbers.
  ContributionForm(DType of = DType::kFloat32, int keeps = 0) : type(of), kept(keeps) {}
  bool exact() const { return type == DType::kFloat32 && kept == 0; }
  bool operator==(const ContributionForm&) const = default;

  DType type;
  int kept;  // 0: all numbers
};

/// The most numbers of a block that may be kept. With that many numbers, and a byte for the place
/// of each, a block of bfloat16 still takes three quarters of its bytes.
inline constexpr int kMostKept = 128;

/// Returns how many bytes of a frame stand for this many bytes of float32.
inline std::size_t travelling_bytes(std::size_t bytes, DType type) {
  const std::size_t numbers = bytes / sizeof(float);
  if (type == DType::kFloat32) return bytes;
  if (type != DType::kUInt8) return bytes / 2;
  return numbers + (numbers + kScaledBlock - 1) / kScaledBlock * kScaleBytes;
}

/// Returns how many bytes of float32 a frame of `travelling` bytes stands for. Returns nullopt when
/// no number of float32 values takes exactly so many bytes.
inline std::optional<std::size_t> float_bytes(std::size_t travelling, DType type) {
  if (type == DType::kFloat32) return travelling;
  if (type != DType::kUInt8) return travelling * 2;
  constexpr std::size_t kWhole = kScaledBlock + kScaleBytes;
  const std::size_t scales = (travelling + kWhole - 1) / kWhole * kScaleBytes;
  if (scales > travelling) return std::nullopt;
  const std::size_t bytes = (travelling - scales) * sizeof(float);
  if (travelling_bytes(bytes, type) != travelling) return std::nullopt;
  return bytes;
}

inline std::size_t travelling_bytes(std::size_t bytes, const ContributionForm& form) {
  if (form.kept == 0) return travelling_bytes(bytes, form.type);
  const std::size_t numbers = bytes / sizeof(float), kept = std::size_t(form.kept);
  const std::size_t of_block = kept * (sizeof(std::uint8_t) + size_of(form.type));
  return numbers / kScaledBlock * of_block +
         std::min(of_block, numbers % kScaledBlock * size_of(form.type));
}

}  // namespace paceline
