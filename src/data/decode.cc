#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/philox.h"
#include "data/image_part.h"
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

void decode_image(const ImageDecoding& decoding, Example& example) {
  const bool jpeg = is_jpeg(example.bytes);
  if (!jpeg && !is_png(example.bytes)) {
    throw Error(ErrorCode::kDataLoss, "it is no JPEG or PNG file");
  }
  const ImageSize size = jpeg ? jpeg_size(example.bytes) : png_size(example.bytes);
  check_size(size);
  const ImagePart part = part_to_decode(decoding, size, example.epoch, example.place);
  const bool as_it_is = decoding.height == 0 || decoding.width == 0;
  const std::int64_t height = as_it_is ? size.height : decoding.height,
                     width = as_it_is ? size.width : decoding.width;
  const DecodedPart decoded = jpeg ? decode_jpeg(example.bytes, part, height, width, example.spare)
                                   : decode_png(example.bytes, part, example.spare);
  if (decoded.height == height && decoded.width == width && decoded.part.left == 0 &&
      decoded.part.top == 0 && decoded.part.width == double(width) &&
      decoded.part.height == double(height)) {
    std::swap(example.memory, example.spare);
  } else {
    example.memory.resize(std::size_t(height * width * 3));
    resize_part(example.spare, decoded, height, width, example.memory.data());
  }
  example.bytes = example.memory;
  example.size = {height, width, 3};
  example.layout = PixelLayout::kInterleaved;
}

}  // namespace paceline
