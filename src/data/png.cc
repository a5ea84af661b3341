#include <fmt/format.h>
#include <png.h>

#include <string>

#include "base/text_file.h"
#include "data/image_part.h"
#include "paceline/error.h"

namespace paceline {
namespace {

constexpr std::uint8_t kSignature[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};

/// libpng's description of an image, freed with the object.
class PngImage {
 public:
  PngImage() { image_.version = PNG_IMAGE_VERSION; }
  explicit PngImage(std::span<const std::uint8_t> file) : PngImage() {
    if (png_image_begin_read_from_memory(&image_, file.data(), file.size()) == 0) fail();
    image_.format = PNG_FORMAT_RGB;
  }
  ~PngImage() { png_image_free(&image_); }
  PngImage(const PngImage&) = delete;
  PngImage& operator=(const PngImage&) = delete;
  png_image& operator*() { return image_; }
  png_image* operator->() { return &image_; }
  [[noreturn]] void fail() const { throw Error(ErrorCode::kDataLoss, image_.message); }

 private:
  png_image image_{};
};

}  // namespace

bool is_png(std::span<const std::uint8_t> file) {
  return file.size() >= std::size(kSignature) &&
         std::equal(std::begin(kSignature), std::end(kSignature), file.begin());
}

ImageSize png_size(std::span<const std::uint8_t> file) {
  PngImage image(file);
  return {std::int64_t(image->height), std::int64_t(image->width), 3};
}

DecodedPart decode_png(std::span<const std::uint8_t> file, const ImagePart& part,
                       std::vector<std::uint8_t>& to) {
  PngImage image(file);
  // Before so much memory is taken: nothing is compressed to less than this.
  constexpr std::size_t kMostPixelsOfByte = 1032 * 8;
  if (std::size_t(image->height) * image->width / kMostPixelsOfByte > file.size()) {
    throw Error(ErrorCode::kDataLoss, "it is too short for its number of pixels");
  }
  to.resize(std::size_t(image->height) * std::size_t(image->width) * 3);
  // Transparent pixels are shown on black.
  const png_color black = {0, 0, 0};
  if (png_image_finish_read(&*image, &black, to.data(), 0, nullptr) == 0) image.fail();
  return {std::int64_t(image->height), std::int64_t(image->width), part};
}

void write_png(const std::string& path, std::span<const std::uint8_t> pixels, std::int64_t height,
               std::int64_t width) {
  if (height < 1 || width < 1 || pixels.size() != std::size_t(height * width * 3)) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[png] {} values are not {}x{} pixels", pixels.size(), height, width));
  }
  PngImage image;
  image->height = png_uint_32(height);
  image->width = png_uint_32(width);
  image->format = PNG_FORMAT_RGB;
  png_alloc_size_t bytes = 0;
  if (png_image_write_to_memory(&*image, nullptr, &bytes, 0, pixels.data(), 0, nullptr) == 0) {
    image.fail();
  }
  std::string file(bytes, '\0');
  if (png_image_write_to_memory(&*image, file.data(), &bytes, 0, pixels.data(), 0, nullptr) == 0) {
    image.fail();
  }
  file.resize(bytes);
  write_text_file("image", path, file);
}

}  // namespace paceline
