#include "bench/photo_files.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <vector>

#include "base/philox.h"
#include "base/text_file.h"
#include "data/jpeg_encode.h"

namespace paceline::bench {
namespace {

constexpr std::int64_t kHeight = 375, kWidth = 500;
constexpr int kOctaves = 7, kLargestCell = 64, kOctavesOfOneColour = 3;
constexpr double kLargestAmplitude = 60, kFall = 1.3;
constexpr double kLeastBytes = 90e3, kMostBytes = 120e3;

using Pixels = std::vector<std::uint8_t>;

/// Noise that is smooth between the corners of cells.
class CellNoise {
 public:
  CellNoise(std::uint64_t key, int cell) : key_(key), cell_(cell) {}
  double at(std::int64_t y, std::int64_t x) const {
    const std::int64_t row = y / cell_, column = x / cell_;
    const double down = double(y % cell_) / cell_, across = double(x % cell_) / cell_;
    const double above = std::lerp(corner(row, column), corner(row, column + 1), across);
    const double below = std::lerp(corner(row + 1, column), corner(row + 1, column + 1), across);
    return std::lerp(above, below, down);
  }

 private:
  double corner(std::int64_t row, std::int64_t column) const {
    return to_unit_float(philox(key_, std::uint64_t(row), std::uint64_t(column))[0]) - 0.5;
  }
  std::uint64_t key_;
  int cell_;
};

Pixels photo_pixels(std::int64_t number) {
  std::vector<double> values(std::size_t(kHeight * kWidth * 3), 128);
  for (int octave = 0; octave < kOctaves; ++octave) {
    const double amplitude = 2 * kLargestAmplitude / std::pow(kFall, octave);
    for (std::int64_t c = 0; c < 3; ++c) {
      // Large things are grey, small ones coloured.
      const std::int64_t colour = octave < kOctavesOfOneColour ? 0 : c;
      const CellNoise noise(std::uint64_t((number * kOctaves + octave) * 3 + colour),
                            kLargestCell >> octave);
      for (std::int64_t i = 0; i < kHeight * kWidth; ++i) {
        values[std::size_t(3 * i + c)] += amplitude * noise.at(i / kWidth, i % kWidth);
      }
    }
  }
  Pixels pixels;
  pixels.reserve(values.size());
  for (const double value : values) pixels.push_back(std::uint8_t(std::clamp(value, 0.0, 255.0)));
  return pixels;
}

// Halves the range of qualities until the file has the wanted size.
Pixels photo_file(const Pixels& pixels, int& quality) {
  int least = 1, most = 100;
  while (true) {
    quality = (least + most) / 2;
    Pixels file = encode_jpeg(pixels, kHeight, kWidth, quality);
    const auto bytes = double(file.size());
    if ((bytes >= kLeastBytes && bytes <= kMostBytes) || most - least <= 1) return file;
    (bytes < kLeastBytes ? least : most) = quality;
  }
}

}  // namespace

PhotoFiles write_photo_files(const std::string& folder, std::int64_t count) {
  PhotoFiles written{.files = count, .height = kHeight, .width = kWidth};
  for (std::int64_t i = 0; i < count; ++i) {
    const Pixels file = photo_file(photo_pixels(i), written.quality);
    written.mean_bytes += double(file.size()) / double(count);
    const std::filesystem::path path =
        std::filesystem::path(folder) / std::to_string(i % 2) / (std::to_string(i) + ".jpg");
    std::filesystem::create_directories(path.parent_path());
    write_text_file("image", path.string(), std::string(file.begin(), file.end()));
  }
  return written;
}

}  // namespace paceline::bench
