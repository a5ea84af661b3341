// For tests: standardised images from which a model can learn, since each class shows waves of its
// own direction and length.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>

#include "paceline/tensor.h"

namespace paceline::models {

struct LabelledImages {
  Tensor images;  // float32 (count,3,pixels,pixels), mean 0 and variance about 1.25
  Tensor labels;  // int32 (count), 0, 1, …, classes − 1, 0, …
};

/// A wave in one channel of an image. The class decides the direction and the length of the wave.
struct Wave {
  double along_x, along_y, phase;
  double at(std::int64_t x, std::int64_t y) const {
    return std::numbers::sqrt2 * std::sin(along_x * double(x) + along_y * double(y) + phase);
  }
};

inline Wave wave_of(std::int64_t label, std::int64_t classes, double phase) {
  const double angle = std::numbers::pi * double(label) / double(classes);
  const double length = 4 + double(label % 3) * 3;  // pixels
  const double frequency = 2 * std::numbers::pi / length;
  return {frequency * std::cos(angle), frequency * std::sin(angle), phase};
}

/// Returns images that are a function of the arguments alone.
inline LabelledImages standardised_images(std::int64_t count, std::int64_t pixels,
                                          std::int64_t classes, std::uint64_t seed) {
  LabelledImages made{Tensor(DType::kFloat32, {count, 3, pixels, pixels}),
                      Tensor(DType::kInt32, {count})};
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> phase(0, 2 * std::numbers::pi);
  std::normal_distribution<double> noise(0, 0.5);
  float* next = made.images.data<float>().data();
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t label = i % classes;
    made.labels.data<std::int32_t>()[std::size_t(i)] = std::int32_t(label);
    for (int channel = 0; channel < 3; ++channel) {
      const Wave wave = wave_of(label, classes, phase(random));
      for (std::int64_t y = 0; y < pixels; ++y)
        for (std::int64_t x = 0; x < pixels; ++x) *next++ = float(wave.at(x, y) + noise(random));
    }
  }
  return made;
}

}  // namespace paceline::models
