#include "bench/input_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/cores.h"
#include "base/philox.h"
#include "base/temporary_folder.h"
#include "base/text_file.h"
#include "bench/timing.h"
#include "data/jpeg_encode.h"
#include "paceline/zoo_data.h"

namespace paceline::bench {
namespace {

/// Generated JPEG files, which take as long to decode as photographs.
struct PhotoFiles {
  std::int64_t files = 0, height = 0, width = 0;
  double mean_bytes = 0;
  int quality = 0;  // JPEG quality of the last file
};

constexpr std::int64_t kHeight = 375, kWidth = 500;
constexpr int kOctaves = 7, kLargestCell = 64, kOctavesOfOneColour = 3;
constexpr double kLargestAmplitude = 60, kFall = 1.3;
constexpr double kLeastBytes = 90e3, kMostBytes = 120e3;

using Pixels = std::vector<std::uint8_t>;

/// Noise that is smooth between the corners of its cells.
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
      // Large structures are grey, small ones coloured.
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

// Searches for the quality at which the file has the wanted size, by halving the range of
// qualities.
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

/// Writes `count` images of 500×375 to FOLDER/0 and FOLDER/1: noise of all sizes from 64 pixels to
/// one, whose amplitudes fall with the size as in photographs. The quality is chosen so that each
/// file has 90 to 120 KB.
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

constexpr std::int64_t kImages = 50'000, kPhotos = 64;
constexpr std::int64_t kRecordsOfBatch = 128, kPhotosOfBatch = 32, kSideOfPhoto = 224;
constexpr std::int64_t kBytesOfCache = std::int64_t{1} << 30;
constexpr double kSecondsOfRepeat = 0.5;

Pipeline distorted(Pipeline images, const Distortion& distortion) {
  return images.interleave(4).shuffle(20'000).repeat().distort(distortion).batch(kRecordsOfBatch);
}

Pipeline photos_in(const std::string& folder) {
  return Pipeline(image_folder(folder))
      .shuffle(kPhotos)
      .repeat()
      .decode({.height = kSideOfPhoto, .width = kSideOfPhoto, .random = true})
      .distort({.height = kSideOfPhoto, .width = kSideOfPhoto})
      .batch(kPhotosOfBatch);
}

void measure_case(Recorder& recorder, const InputCase& one) {
  recorder.progress(one.name);
  PipelineReader reader(one.pipeline);
  std::vector<double> rates =
      time_calls(recorder.repeats(), kSecondsOfRepeat, [&] { reader.next(); });
  const auto batch = double(one.pipeline.shape()[0]);
  for (double& rate : rates) rate = batch / rate;
  recorder.add(figure_of(one.name, "images_per_s", rates));
}

}  // namespace

std::vector<InputCase> input_cases(const std::string& folder, std::int64_t images,
                                   std::int64_t photos, std::string& note) {
  const std::string binary = folder + "/binary", photo = folder + "/photos";
  generate_images(binary, images, 1);
  const PhotoFiles files = write_photo_files(photo, photos);
  note = fmt::format("{} JPEG files of {}x{} at quality {}, {:.0f} KB each", files.files,
                     files.width, files.height, files.quality, files.mean_bytes / 1e3);
  const Pipeline records(record_files(files_of(binary + "/data_batch_*", ".bin")));
  const Pipeline kept = Pipeline(records).cache(kBytesOfCache);
  std::vector<InputCase> cases = {
      {"cifar10, distorted, from files", distorted(records, cifar10_distortion(true, 1))},
      {"cifar10, distorted, from memory", distorted(kept, cifar10_distortion(true, 1))},
      {"resnet, distorted, from files", distorted(records, resnet_distortion(true, 1))},
      {"resnet, distorted, from memory", distorted(kept, resnet_distortion(true, 1))},
      {"JPEG folder, random 224x224", photos_in(photo)}};
  cases.push_back({"JPEG folder, random 224x224, one thread", photos_in(photo).threads(1)});
  return cases;
}

void measure_input(Recorder& recorder) {
  const TemporaryFolder folder;
  recorder.progress("generating images");
  std::string note;
  const std::vector<InputCase> cases = input_cases(folder.path(), kImages, kPhotos, note);
  recorder.note(fmt::format("{}; {} input threads", note, usable_cores()));
  for (const InputCase& one : cases) measure_case(recorder, one);
}

}  // namespace paceline::bench
