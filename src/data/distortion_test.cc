#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "base/philox.h"
#include "base/testing/error_of.h"
#include "data/pixel_kernels.h"
#include "kernels/testing/each_instruction_set.h"
#include "paceline/data.h"
#include "paceline/zoo_data.h"

namespace paceline {
namespace {

/// The numbers that a distortion draws.
struct NaiveDraws {
  // The place of the part in the image with its margin of zeros.
  std::int64_t top = 0, left = 0;
  bool mirrored = false;
  double brightness = 0, contrast = 1;
};

/// Values as (channels, height, width).
struct Planes {
  ImageSize size;
  std::vector<double> values = std::vector<double>(std::size_t(size.values()));
  double& at(std::int64_t c, std::int64_t y, std::int64_t x) {
    return values[std::size_t((c * size.height + y) * size.width + x)];
  }
};

std::int64_t reflected_place(std::int64_t i, std::int64_t count) {
  if (i < 0) return -i;
  return i < count ? i : 2 * count - 2 - i;
}

double pixel(const Example& example, PadWith margin, std::int64_t c, std::int64_t y,
             std::int64_t x) {
  const ImageSize& size = example.size;
  if (margin == PadWith::kReflection) {
    y = reflected_place(y, size.height);
    x = reflected_place(x, size.width);
  }
  if (y < 0 || y >= size.height || x < 0 || x >= size.width) return 0;
  const std::int64_t at = example.layout == PixelLayout::kPlanar
                              ? (c * size.height + y) * size.width + x
                              : (y * size.width + x) * size.channels + c;
  return example.bytes[std::size_t(at)];
}

template <typename F>
void for_each_value(const ImageSize& size, F&& call) {
  for (std::int64_t c = 0; c < size.channels; ++c) {
    for (std::int64_t y = 0; y < size.height; ++y) {
      for (std::int64_t x = 0; x < size.width; ++x) call(c, y, x);
    }
  }
}

void change_contrast(Planes& image, double factor) {
  const std::int64_t plane = image.size.height * image.size.width;
  for (std::int64_t c = 0; c < image.size.channels; ++c) {
    double mean = 0;
    for (std::int64_t i = 0; i < plane; ++i) {
      mean += image.values[std::size_t(c * plane + i)] / double(plane);
    }
    for (std::int64_t i = 0; i < plane; ++i) {
      double& value = image.values[std::size_t(c * plane + i)];
      value = (value - mean) * factor + mean;
    }
  }
}

void standardise(Planes& image) {
  const auto n = double(image.values.size());
  double mean = 0, variance = 0;
  for (const double value : image.values) mean += value / n;
  for (const double value : image.values) variance += (value - mean) * (value - mean) / n;
  const double deviation = std::max(std::sqrt(variance), 1 / std::sqrt(n));
  for (double& value : image.values) value = (value - mean) / deviation;
}

/// Computes the distortion as it is defined, value by value in float64, in the layout that the
/// distortion asks for.
std::vector<double> naive_distortion(const Distortion& distortion, const Example& example,
                                     const NaiveDraws& draws) {
  const std::int64_t pad = distortion.pad;
  Planes image{{distortion.height > 0 ? distortion.height : example.size.height + 2 * pad,
                distortion.width > 0 ? distortion.width : example.size.width + 2 * pad,
                example.size.channels}};
  for_each_value(image.size, [&](std::int64_t c, std::int64_t y, std::int64_t x) {
    const std::int64_t from = draws.mirrored ? image.size.width - 1 - x : x;
    image.at(c, y, x) =
        pixel(example, distortion.pad_with, c, y + draws.top - pad, from + draws.left - pad);
  });
  for (double& value : image.values) value += draws.brightness;
  change_contrast(image, draws.contrast);
  if (distortion.standardise) standardise(image);
  for_each_value(image.size, [&](std::int64_t c, std::int64_t y, std::int64_t x) {
    double& value = image.at(c, y, x);
    value = (value - distortion.means[std::size_t(c)]) * distortion.scales[std::size_t(c)];
  });
  if (distortion.layout == PixelLayout::kPlanar) return image.values;
  std::vector<double> values(image.values.size());
  for_each_value(image.size, [&](std::int64_t c, std::int64_t y, std::int64_t x) {
    values[std::size_t((y * image.size.width + x) * image.size.channels + c)] = image.at(c, y, x);
  });
  return values;
}

using ::testing::Each;
using ::testing::HasSubstr;

/// An image of noise that depends on `number` alone.
struct Image {
  Image(std::uint64_t number, const ImageSize& size, PixelLayout layout = PixelLayout::kPlanar) {
    for (std::int64_t i = 0; i < size.values(); ++i) {
      pixels.push_back(std::uint8_t(philox(number, std::uint64_t(i), 0)[0] >> 24));
    }
    example.bytes = pixels;
    example.size = size;
    example.layout = layout;
  }
  std::vector<std::uint8_t> pixels;
  Example example;
};

std::vector<float> distorted(const Distortion& distortion, Example& example) {
  const auto part = [&](std::int64_t wanted, std::int64_t all) {
    return wanted > 0 ? wanted : all + 2 * distortion.pad;
  };
  std::vector<float> values(std::size_t(part(distortion.height, example.size.height) *
                                        part(distortion.width, example.size.width) *
                                        example.size.channels));
  distort(distortion, example, values);
  return values;
}

double greatest_difference(const std::vector<float>& values, const std::vector<double>& wanted) {
  double greatest = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    greatest = std::max(greatest, std::abs(double(values[i]) - wanted[i]));
  }
  return values.size() == wanted.size() ? greatest : INFINITY;
}

/// The naive result that is nearest to the values, of all parts, mirrored or not, with this
/// contrast.
struct Nearest {
  double difference = INFINITY;
  NaiveDraws draws;
};
Nearest nearest(const Distortion& distortion, Example& example, const std::vector<float>& values,
                double contrast) {
  Nearest best;
  const std::int64_t pad = 2 * distortion.pad;
  for (std::int64_t top = 0; top <= example.size.height + pad - distortion.height; ++top) {
    for (std::int64_t left = 0; left <= example.size.width + pad - distortion.width; ++left) {
      for (const bool mirrored : {false, true}) {
        const NaiveDraws draws = {top, left, mirrored, 0, contrast};
        const double difference =
            greatest_difference(values, naive_distortion(distortion, example, draws));
        if (difference < best.difference) best = {difference, draws};
      }
    }
  }
  return best;
}

TEST(Distortion, OfResnetIsThatOfTheDefinitionWithSomePart) {
  with_each_instruction_set([] {
    for (const PixelLayout layout : {PixelLayout::kPlanar, PixelLayout::kInterleaved}) {
      Distortion distortion = resnet_distortion(true, 3);
      distortion.layout = layout;
      Image image(1, {32, 32, 3});
      for (std::int64_t place = 0; place < 4; ++place) {
        image.example.place = place;
        const std::vector<float> values = distorted(distortion, image.example);
        EXPECT_LT(nearest(distortion, image.example, values, 1).difference, 2e-6);
      }
    }
  });
}

TEST(Distortion, OfCifar10IsThatOfTheDefinitionWithSomePart) {
  with_each_instruction_set([] {
    Image image(2, {32, 32, 3});
    Distortion distortion = cifar10_distortion(true, 3);
    distortion.contrast_low = distortion.contrast_high = 0.4;
    image.example.place = 17;
    const std::vector<float> values = distorted(distortion, image.example);
    EXPECT_LT(nearest(distortion, image.example, values, 0.4).difference, 2e-6);
  });
}

TEST(Distortion, ReflectsTheImageAndScalesItsChannels) {
  with_each_instruction_set([] {
    for (const PixelLayout layout : {PixelLayout::kPlanar, PixelLayout::kInterleaved}) {
      const Distortion distortion = {.pad = 3,
                                     .pad_with = PadWith::kReflection,
                                     .height = 12,
                                     .width = 10,
                                     .standardise = false,
                                     .means = {120, 110, 100},
                                     .scales = {0.5, 0.25, 0.125}};
      Image image(5, {12, 10, 3}, layout);
      std::set<std::pair<std::int64_t, bool>> seen;
      for (std::int64_t place = 0; place < 60; ++place) {
        image.example.place = place;
        const std::vector<float> values = distorted(distortion, image.example);
        const Nearest found = nearest(distortion, image.example, values, 1);
        EXPECT_LT(found.difference, 2e-5);
        seen.emplace(found.draws.left, found.draws.mirrored);
      }
      EXPECT_GT(seen.size(), 10u) << "margins on both sides";
    }
  });
}

TEST(Distortion, MirrorsByTurns) {
  Image image(6, {4, 4, 3});
  const Distortion distortion = {.mirror = Mirror::kAlternating, .standardise = false};
  int mirrored = 0;
  for (std::int64_t index = 0; index < 400; ++index) {
    image.example.index = index;
    std::vector<std::vector<float>> epochs;
    for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
      image.example.epoch = epoch;
      image.example.place = 7 * index + epoch;
      epochs.push_back(distorted(distortion, image.example));
    }
    EXPECT_NE(epochs[0], epochs[1]);
    EXPECT_EQ(epochs[0], epochs[2]);
    mirrored += epochs[0][0] == image.pixels[0] ? 0 : 1;
  }
  EXPECT_NEAR(mirrored, 200, 50);
}

TEST(Distortion, ForEvaluationIsTheCentre) {
  Image image(4, {32, 32, 3});
  image.example.place = 5;
  const Distortion small = cifar10_distortion(false, 1), all = resnet_distortion(false, 1);
  EXPECT_LT(greatest_difference(distorted(small, image.example),
                                naive_distortion(small, image.example, {.top = 4, .left = 4})),
            2e-6);
  EXPECT_LT(greatest_difference(distorted(all, image.example),
                                naive_distortion(all, image.example, {.top = 2, .left = 2})),
            2e-6);
}

TEST(Distortion, TakesOddSizesBothLayoutsAndOtherChannels) {
  with_each_instruction_set([] {
    for (const std::int64_t channels : {1, 3, 4}) {
      for (const PixelLayout from : {PixelLayout::kPlanar, PixelLayout::kInterleaved}) {
        for (const PixelLayout to : {PixelLayout::kPlanar, PixelLayout::kInterleaved}) {
          Image image(std::uint64_t(channels), {13, 37, channels}, from);
          Distortion distortion = {.pad = 3, .height = 11, .width = 29, .layout = to};
          const std::vector<float> values = distorted(distortion, image.example);
          EXPECT_LT(nearest(distortion, image.example, values, 1).difference, 2e-6);
        }
      }
    }
  });
}

TEST(Distortion, StandardisesToMeanZeroAndDeviationOne) {
  Image image(7, {32, 32, 3});
  const std::vector<float> values = distorted(cifar10_distortion(true, 1), image.example);
  double mean = 0, squares = 0;
  for (const float value : values) {
    mean += value / double(values.size());
    squares += double(value) * value / double(values.size());
  }
  EXPECT_NEAR(mean, 0, 1e-6);
  EXPECT_NEAR(squares, 1, 1e-6);
}

TEST(Distortion, MakesExactZerosOfAnImageOfOneColour) {
  Image image(7, {32, 32, 3});
  std::ranges::fill(image.pixels, 200);
  EXPECT_THAT(distorted(cifar10_distortion(true, 1), image.example), Each(0.0f));
}

TEST(Distortion, WithoutStandardisingHasBrightnessAndContrast) {
  Image image(8, {4, 4, 3});
  const Distortion distortion = {
      .brightness = 20, .contrast_low = 0.5, .contrast_high = 0.5, .standardise = false};
  std::set<float> brightnesses;
  for (std::int64_t place = 0; place < 200; ++place) {
    image.example.place = place;
    const std::vector<float> values = distorted(distortion, image.example);
    double mean = 0, before = 0;
    for (const float value : values) mean += value / 48;
    for (const std::uint8_t pixel : image.pixels) before += pixel / 48.0;
    const double brightness = mean - before;
    EXPECT_LE(std::abs(brightness), 20.001);
    brightnesses.insert(float(brightness));
    EXPECT_LT(
        std::min(greatest_difference(values, naive_distortion(distortion, image.example,
                                                              {0, 0, true, brightness, 0.5})),
                 greatest_difference(values, naive_distortion(distortion, image.example,
                                                              {0, 0, false, brightness, 0.5}))),
        1e-3);
  }
  EXPECT_LT(*brightnesses.begin(), -15);
  EXPECT_GT(*brightnesses.rbegin(), 15);
}

TEST(Distortion, LeavesValuesAsTheyAreWhenNothingIsAskedFor) {
  Image image(9, {5, 5, 3});
  const Distortion distortion = {.random = false, .standardise = false};
  const std::vector<float> values = distorted(distortion, image.example);
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], image.pixels[i]);
}

TEST(Distortion, IsAFunctionOfSeedEpochAndPlace) {
  Image image(10, {32, 32, 3});
  const auto values = [&](std::uint64_t seed, std::int64_t epoch, std::int64_t place) {
    image.example.epoch = epoch;
    image.example.place = place;
    return distorted(cifar10_distortion(true, seed), image.example);
  };
  EXPECT_EQ(values(1, 2, 3), values(1, 2, 3));
  EXPECT_NE(values(1, 2, 3), values(2, 2, 3));
  EXPECT_NE(values(1, 2, 3), values(1, 3, 3));
  EXPECT_NE(values(1, 2, 3), values(1, 2, 4));
}

// Every part and both directions are equally likely: an 8×8 image in a margin of 2 has 25 parts.
TEST(Distortion, DrawsEveryPartAndDirectionEquallyOften) {
  Image image(11, {8, 8, 3});
  const Distortion distortion = {.pad = 2, .height = 8, .width = 8};
  std::map<std::vector<float>, int> seen;
  constexpr int kDraws = 20000;
  for (std::int64_t place = 0; place < kDraws; ++place) {
    image.example.place = place;
    ++seen[distorted(distortion, image.example)];
  }
  EXPECT_EQ(seen.size(), 50u);
  for (const auto& [values, count] : seen)
    EXPECT_NEAR(count, kDraws / 50.0, 100);  // five deviations
}

TEST(Distortion, DrawsContrastEvenly) {
  // Without standardising, the contrast multiplies the difference of the two pixels.
  Image image(12, {1, 2, 1});
  image.pixels = {100, 102};
  image.example.bytes = image.pixels;
  const Distortion distortion = {.contrast_low = 0.2, .contrast_high = 1.8, .standardise = false};
  double mean = 0, least = 10, most = 0;
  constexpr int kDraws = 10000;
  for (std::int64_t place = 0; place < kDraws; ++place) {
    image.example.place = place;
    const std::vector<float> values = distorted(distortion, image.example);
    const double factor = std::abs(values[1] - values[0]) / 2;
    mean += factor / kDraws;
    least = std::min(least, factor);
    most = std::max(most, factor);
  }
  EXPECT_NEAR(mean, 1, 0.03);
  EXPECT_NEAR(least, 0.2, 0.01);
  EXPECT_NEAR(most, 1.8, 0.01);
}

TEST(Distortion, SaysThatAFileMustBeDecodedBefore) {
  const std::vector<std::uint8_t> file(103);
  Example encoded;
  encoded.bytes = file;
  std::vector<float> values(3 * 16 * 16);
  EXPECT_THAT(error_of(ErrorCode::kInvalidArgument,
                       [&] { distort({.height = 16, .width = 16}, encoded, values); }),
              HasSubstr("decode() comes before distort()"));
}

TEST(Distortion, RefusesAPartThatIsLargerThanTheImage) {
  Image image(1, {20, 32, 3});
  std::vector<float> values(24 * 24 * 3);
  EXPECT_THAT(error_of(ErrorCode::kInvalidArgument,
                       [&] { distort(cifar10_distortion(true, 1), image.example, values); }),
              HasSubstr("24x24 and 1728 values of an image of 20x32"));
}

TEST(Distortion, RefusesAReflectionThatIsLargerThanTheImage) {
  Image image(1, {4, 16, 3});
  const Distortion distortion = {.pad = 4, .pad_with = PadWith::kReflection, .width = 16};
  EXPECT_THAT(error_of(ErrorCode::kInvalidArgument, [&] { distorted(distortion, image.example); }),
              HasSubstr("with 4 pixels around it"));
}

TEST(PixelKernels, SumsAreExactForLargeImages) {
  with_each_instruction_set([] {
    const std::vector<std::uint8_t> white(3'000'001, 255);
    const PixelSums sums = pixel_sums(white);
    EXPECT_EQ(sums.sum, std::int64_t(white.size()) * 255);
    EXPECT_EQ(sums.squares, std::int64_t(white.size()) * 255 * 255);
  });
}

}  // namespace
}  // namespace paceline
