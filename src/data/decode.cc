#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/philox.h"
#include "data/image_part.h"
#include "data/orientation.h"
#include "paceline/error.h"

namespace paceline {
namespace {

constexpr int kTries = 10;
constexpr double kWidest = 4.0 / 3;

ImagePart centre_of(const ImageSize& image, double ratio) {
  const auto width = double(image.width), height = double(image.height);
  ImagePart part = {.width = std::min(width, height * ratio),
                    .height = std::min(height, width / ratio)};
  part.left = (width - part.width) / 2;
  part.top = (height - part.height) / 2;
  return part;
}

void check_size(const ImageSize& size) {
  if (size.height >= 1 && size.width >= 1 && size.height * size.width <= kMostPixels) return;
  throw Error(ErrorCode::kDataLoss,
              fmt::format("an image of {}x{} pixels is not read", size.height, size.width));
}

const ImageFormat& format_of(std::span<const std::uint8_t> file) {
  if (file.empty()) throw Error(ErrorCode::kDataLoss, "it is empty");
  for (const ImageFormat* format : kImageFormats) {
    if (format->is_of(file)) return *format;
  }
  throw Error(ErrorCode::kDataLoss, "it is no JPEG, PNG or WebP file");
}

// Decodes the part at this size into the example's `memory`; `spare` is working memory.
void decode_part(const ImageFormat& format, const ImagePart& part, std::int64_t height,
                 std::int64_t width, Example& example) {
  const DecodedPart decoded = format.decode(example.bytes, part, height, width, example.spare);
  if (decoded.height == height && decoded.width == width && decoded.part.left == 0 &&
      decoded.part.top == 0 && decoded.part.width == double(width) &&
      decoded.part.height == double(height)) {
    std::swap(example.memory, example.spare);
  } else {
    example.memory.resize(std::size_t(height * width * 3));
    resize_part(example.spare, decoded, height, width, example.memory.data());
  }
}

}  // namespace

ImagePart part_to_decode(const ImageDecoding& decoding, const ImageSize& image, std::int64_t epoch,
                         std::int64_t place) {
  const auto width = double(image.width), height = double(image.height);
  if (decoding.height == 0 || decoding.width == 0) return {0, 0, width, height};
  const std::uint64_t key = random_key(decoding.seed, "part to decode");
  for (int i = 0; decoding.random && i < kTries; ++i) {
    const PhiloxBlock words =
        philox(key, std::uint64_t(place), std::uint64_t(epoch) * kTries + std::uint64_t(i));
    const double area = width * height * to_uniform<double>(words[0], decoding.least_area, 1);
    const double ratio =
        std::exp(to_uniform<double>(words[1], -std::log(kWidest), std::log(kWidest)));
    ImagePart part = {.width = std::round(std::sqrt(area * ratio)),
                      .height = std::round(std::sqrt(area / ratio))};
    if (part.width < 1 || part.height < 1 || part.width > width || part.height > height) continue;
    part.left = std::floor(to_uniform<double>(words[2], 0, width - part.width + 1));
    part.top = std::floor(to_uniform<double>(words[3], 0, height - part.height + 1));
    return part;
  }
  return centre_of(image, double(decoding.width) / double(decoding.height));
}

void show_on_black(std::vector<std::uint8_t>& pixels) {
  constexpr int kOpaque = 255;
  std::size_t to = 0;
  for (std::size_t i = 0; i + 3 < pixels.size(); i += 4) {
    const int alpha = pixels[i + 3];
    for (std::size_t c = 0; c < 3; ++c) {
      pixels[to++] = std::uint8_t((pixels[i + c] * alpha + kOpaque / 2) / kOpaque);
    }
  }
  pixels.resize(to);
}

void decode_image(const ImageDecoding& decoding, Example& example) {
  const ImageFormat& format = format_of(example.bytes);
  const ImageHeader header = format.header(example.bytes);
  check_size(header.size);
  const Orientation turned(header.orientation);
  const ImageSize shown = turned.shown(header.size);
  const ImagePart part = part_to_decode(decoding, shown, example.epoch, example.place);
  const bool as_it_is = decoding.height == 0 || decoding.width == 0;
  example.size = as_it_is ? shown : ImageSize{decoding.height, decoding.width, 3};
  // The size before turning: the same swap of height and width leads back to it.
  const ImageSize stored = turned.shown(example.size);
  decode_part(format, turned.stored(part, header.size), stored.height, stored.width, example);
  if (turned.changes()) {
    turned.show(example.memory, stored, example.spare);
    std::swap(example.memory, example.spare);
  }
  example.bytes = example.memory;
  example.layout = PixelLayout::kInterleaved;
}

}  // namespace paceline
