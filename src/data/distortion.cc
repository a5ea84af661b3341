// An image stays in the first-level cache while a distortion makes three passes over it. The first
// pass cuts out the part into planes of bytes. The second computes their exact sums, which give
// mean and deviation, and so one linear function for each channel. The third applies these
// functions.
//
// If images are standardised, no brightness is drawn: it would add the same to all values, and
// standardising would subtract it again. One core makes over a million images of CIFAR-10 a second.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/philox.h"
#include "data/pixel_kernels.h"
#include "paceline/data.h"
#include "paceline/error.h"
#include "paceline/zoo_data.h"

namespace paceline {
namespace {

constexpr std::int64_t kMostChannels = 4;

/// The random choices for one image.
struct Draws {
  // The place of the part in the image with its margin of zeros.
  std::int64_t top = 0, left = 0;
  bool mirrored = false;
  double brightness = 0, contrast = 1;
};

ImageSize part_of_image(const Distortion& distortion, const ImageSize& image) {
  const auto or_all = [&](std::int64_t part, std::int64_t all) {
    return part > 0 ? part : all + 2 * distortion.pad;
  };
  return {or_all(distortion.height, image.height), or_all(distortion.width, image.width),
          image.channels};
}

void check_image(const Distortion& distortion, const Example& example, const ImageSize& part,
                 std::size_t values) {
  const ImageSize& size = example.size;
  const std::int64_t pad = distortion.pad;
  const std::int64_t reflected = distortion.pad_with == PadWith::kReflection ? pad : 0;
  if (part.height <= size.height + 2 * pad && part.width <= size.width + 2 * pad &&
      reflected < size.height && 2 * reflected < std::min(size.width, part.width) &&
      size.channels >= 1 && size.channels <= kMostChannels &&
      std::int64_t(example.bytes.size()) == size.values() &&
      std::int64_t(values) == part.values()) {
    return;
  }
  if (size.values() == 0) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("[distort] a record of {} bytes is no pixels: if it is an encoded file, "
                    "decode() comes before distort()",
                    example.bytes.size()));
  }
  const bool too_large = part.height > size.height + 2 * pad || part.width > size.width + 2 * pad;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("[distort] {}: a part of {}x{} and {} values of an image of {}x{} and {} "
                          "channels in {} bytes, with {} pixels around it",
                          too_large ? "the part is larger than the image" : "sizes do not fit",
                          part.height, part.width, values, size.height, size.width, size.channels,
                          example.bytes.size(), pad));
}

std::int64_t scaled_down(std::uint32_t word, std::int64_t below) {
  return std::int64_t((std::uint64_t(word) * std::uint64_t(below)) >> 32);
}

// Mirrors each record in exactly one of two successive epochs.
bool mirrors_by_turns(const Distortion& distortion, const Example& example) {
  const PhiloxBlock words =
      philox(random_key(distortion.seed, "mirror"), std::uint64_t(example.index), 0);
  return (words[0] >> 31 != 0) != (example.epoch % 2 != 0);
}

Draws draw(const Distortion& distortion, const Example& example, const ImageSize& part) {
  const std::int64_t down = example.size.height + 2 * distortion.pad - part.height,
                     right = example.size.width + 2 * distortion.pad - part.width;
  if (!distortion.random) return {.top = down / 2, .left = right / 2};
  const auto place = std::uint64_t(example.place), epoch = std::uint64_t(example.epoch);
  const PhiloxBlock words = philox(random_key(distortion.seed, "distortion"), place, epoch);
  Draws draws = {
      .top = scaled_down(words[0], down + 1),
      .left = scaled_down(words[1], right + 1),
      .mirrored = words[2] >> 31 != 0,
      .contrast = to_uniform<double>(words[3], distortion.contrast_low, distortion.contrast_high)};
  if (distortion.mirror == Mirror::kAlternating) {
    draws.mirrored = mirrors_by_turns(distortion, example);
  }
  if (distortion.brightness > 0 && !distortion.standardise) {
    const PhiloxBlock more = philox(random_key(distortion.seed, "brightness"), place, epoch);
    draws.brightness = to_uniform<double>(more[0], -distortion.brightness, distortion.brightness);
  }
  return draws;
}

void copy_mirrored(const std::uint8_t* from, std::int64_t count, std::uint8_t* to) {
  const std::uint8_t* end = from + count;
  for (; count >= 8; count -= 8, end -= 8, to += 8) {
    std::uint64_t word;
    std::memcpy(&word, end - 8, 8);
    word = __builtin_bswap64(word);
    std::memcpy(to, &word, 8);
  }
  std::reverse_copy(from, from + count, to);
}

// Returns the row or column inside the image that mirrors i. Index i may lie beyond either end.
std::int64_t reflected(std::int64_t i, std::int64_t count) {
  return i < 0 ? -i : std::min(i, 2 * (count - 1) - i);
}

// Fills the margins of a row, before and after the pixels [begin, end), with their reflection.
void reflect_margins(std::uint8_t* row, std::int64_t begin, std::int64_t end, std::int64_t width) {
  for (std::int64_t i = 0; i < begin; ++i) row[i] = row[2 * begin - i];
  for (std::int64_t i = end; i < width; ++i) row[i] = row[2 * (end - 1) - i];
}

/// Cuts the part out of an image, row by row.
class PartCutter {
 public:
  PartCutter(const Distortion& distortion, const Example& example, const ImageSize& part,
             const Draws& draws)
      : from_(example),
        part_(part),
        mirrored_(draws.mirrored),
        reflects_(distortion.pad_with == PadWith::kReflection),
        top_(draws.top - distortion.pad),
        left_(std::max<std::int64_t>(draws.left - distortion.pad, 0)),
        margin_(std::max<std::int64_t>(distortion.pad - draws.left, 0)),
        count_(std::min(example.size.width - left_, part.width - margin_)) {}

  void cut(std::uint8_t* to) const {
    for (std::int64_t y = 0; y < part_.height; ++y, to += part_.width) cut_row(y, to);
  }

 private:
  std::uint8_t* row_of(std::int64_t channel, std::uint8_t* to) const {
    return to + channel * part_.height * part_.width;
  }

  void cut_row(std::int64_t y, std::uint8_t* to) const {
    const std::int64_t rows = from_.size.height;
    const std::int64_t row = reflects_ ? reflected(top_ + y, rows) : top_ + y;
    const bool inside = row >= 0 && row < rows && count_ > 0;
    if (!inside || count_ < part_.width) clear_row(to);
    if (!inside) return;
    const std::int64_t margin = mirrored_ ? part_.width - margin_ - count_ : margin_;
    if (from_.layout == PixelLayout::kPlanar) {
      copy_planar(row, to + margin);
    } else {
      copy_interleaved(row, to + margin);
    }
    if (!reflects_) return;
    for (std::int64_t c = 0; c < part_.channels; ++c) {
      reflect_margins(row_of(c, to), margin, margin + count_, part_.width);
    }
  }

  void clear_row(std::uint8_t* to) const {
    for (std::int64_t c = 0; c < part_.channels; ++c) {
      std::memset(row_of(c, to), 0, std::size_t(part_.width));
    }
  }

  void copy_planar(std::int64_t y, std::uint8_t* to) const {
    for (std::int64_t c = 0; c < part_.channels; ++c) {
      const std::uint8_t* row =
          from_.bytes.data() + (c * from_.size.height + y) * from_.size.width + left_;
      if (mirrored_) {
        copy_mirrored(row, count_, row_of(c, to));
      } else {
        std::memcpy(row_of(c, to), row, std::size_t(count_));
      }
    }
  }

  void copy_interleaved(std::int64_t y, std::uint8_t* to) const {
    const std::int64_t channels = part_.channels;
    const std::uint8_t* row = from_.bytes.data() + (y * from_.size.width + left_) * channels;
    if (channels == 3) {
      split_channels(row, std::size_t(count_), to, row_of(1, to), row_of(2, to));
    } else {
      for (std::int64_t i = 0; i < count_ * channels; ++i)
        row_of(i % channels, to)[i / channels] = row[i];
    }
    if (!mirrored_) return;
    for (std::int64_t c = 0; c < channels; ++c) {
      std::reverse(row_of(c, to), row_of(c, to) + count_);
    }
  }

  const Example& from_;
  const ImageSize part_;
  const bool mirrored_, reflects_;
  const std::int64_t top_, left_;  // of the part, in the image
  const std::int64_t margin_;      // columns of the part to the left of the image
  const std::int64_t count_;       // columns of the part that show the image
};

using Lines = std::array<PixelLine, kMostChannels>;

// The centre of each line is a whole number, so that an image of one colour becomes exactly zero.
Lines lines_of(const Distortion& distortion, const Draws& draws,
               std::span<const std::uint8_t> planes, std::int64_t channels) {
  const std::size_t plane = planes.size() / std::size_t(channels);
  const double k = draws.contrast, n = double(plane), all = double(planes.size());
  std::array<double, kMostChannels> means{};
  double squares = 0, mean = 0, scale = 1, shift = draws.brightness;
  for (std::size_t c = 0; c < std::size_t(channels); ++c) {
    const PixelSums sums = pixel_sums(planes.subspan(c * plane, plane));
    means[c] = double(sums.sum) / n;
    mean += means[c] / double(channels);
    squares += k * k * (double(sums.squares) - double(sums.sum) * means[c]);
  }
  if (distortion.standardise) {
    for (std::size_t c = 0; c < std::size_t(channels); ++c) {
      squares += n * (means[c] - mean) * (means[c] - mean);
    }
    scale = 1 / std::max(std::sqrt(std::max(squares, 0.0) / all), 1 / std::sqrt(all));
    shift = -mean;
  }
  Lines lines{};
  for (std::size_t c = 0; c < std::size_t(channels); ++c) {
    const double center = std::round(means[c]);
    const double value = (k * center + (1 - k) * means[c] + shift) * scale;  // of the centre
    const double factor = distortion.scales[c];
    lines[c] = {float(center), float(k * scale * factor),
                float((value - distortion.means[c]) * factor)};
  }
  return lines;
}

void write_values(PixelLayout layout, std::span<const std::uint8_t> planes, const Lines& lines,
                  std::int64_t channels, float* values) {
  const std::size_t plane = planes.size() / std::size_t(channels);
  if (layout == PixelLayout::kInterleaved && channels == 3) {
    return apply_lines_interleaved(planes, lines.data(), values);
  }
  for (std::size_t c = 0; c < std::size_t(channels); ++c) {
    const auto pixels = planes.subspan(c * plane, plane);
    if (layout == PixelLayout::kPlanar) {
      apply_line(pixels, lines[c], values + c * plane);
      continue;
    }
    for (std::size_t i = 0; i < plane; ++i) {
      apply_line(pixels.subspan(i, 1), lines[c], values + i * std::size_t(channels) + c);
    }
  }
}

}  // namespace

Distortion cifar10_distortion(bool training, std::uint64_t seed) {
  return {.height = 24,
          .width = 24,
          .random = training,
          .brightness = 63,
          .contrast_low = 0.2,
          .contrast_high = 1.8,
          .seed = seed};
}

Distortion resnet_distortion(bool training, std::uint64_t seed) {
  return {.pad = 2, .height = 32, .width = 32, .random = training, .seed = seed};
}

void distort(const Distortion& distortion, Example& example, std::span<float> values) {
  const ImageSize part = part_of_image(distortion, example.size);
  check_image(distortion, example, part, values.size());
  const Draws draws = draw(distortion, example, part);
  example.spare.resize(values.size());
  PartCutter(distortion, example, part, draws).cut(example.spare.data());
  const std::span<const std::uint8_t> planes(example.spare.data(), values.size());
  const Lines lines = lines_of(distortion, draws, planes, part.channels);
  write_values(distortion.layout, planes, lines, part.channels, values.data());
}

}  // namespace paceline
