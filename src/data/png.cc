#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "base/text_file.h"
#include "data/image_part.h"
#include "data/orientation.h"
#include "data/picture.h"
#include "paceline/error.h"

namespace paceline {
namespace {

constexpr std::uint8_t kSignature[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};

struct Chunk {
  std::string_view type;               // "eXIf"
  std::span<const std::uint8_t> data;  // that it holds
  std::size_t begin = 0, end = 0;      // of all of it in the file
};

// Returns the file's first chunk of this type. The search stops at bytes that are no chunk; libpng
// then reports the fault.
std::optional<Chunk> find_chunk(std::span<const std::uint8_t> file, std::string_view type) {
  constexpr std::size_t kAround = 12;  // a chunk's bytes beside its data: length, type, checksum
  std::size_t at = std::size(kSignature);
  while (at + kAround <= file.size()) {
    const std::uint8_t* const begin = file.data() + at;
    const std::size_t size = png_get_uint_32(begin);
    if (size > file.size() - at - kAround) return {};
    const std::string_view found(reinterpret_cast<const char*>(begin + 4), 4);
    if (found == type) return Chunk{found, file.subspan(at + 8, size), at, at + kAround + size};
    at += kAround + size;
  }
  return {};
}

/// libpng's description of an image, freed with the object.
class PngImage {
 public:
  PngImage() { image_.version = PNG_IMAGE_VERSION; }
  // Reads values as sRGB whatever the file says, as other readers of training data do. libpng would
  // obey the file's gAMA, so the constructor removes it, and without gAMA libpng would take 16 bits
  // for linear light, so the constructor sets PNG_IMAGE_FLAG_16BIT_sRGB.
  explicit PngImage(std::span<const std::uint8_t> file) : PngImage() {
    if (const auto gamma = find_chunk(file, "gAMA")) {
      const auto from = file.begin();
      without_gamma_.assign(from, from + std::ptrdiff_t(gamma->begin));
      without_gamma_.insert(without_gamma_.end(), from + std::ptrdiff_t(gamma->end), file.end());
      file = without_gamma_;
    }
    if (png_image_begin_read_from_memory(&image_, file.data(), file.size()) == 0) fail();
    image_.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
    image_.format = has_alpha() ? PNG_FORMAT_RGBA : PNG_FORMAT_RGB;
  }
  bool has_alpha() const { return (image_.format & PNG_FORMAT_FLAG_ALPHA) != 0; }
  ~PngImage() { png_image_free(&image_); }
  PngImage(const PngImage&) = delete;
  PngImage& operator=(const PngImage&) = delete;
  png_image& operator*() { return image_; }
  png_image* operator->() { return &image_; }
  [[noreturn]] void fail() const { throw Error(ErrorCode::kDataLoss, image_.message); }

 private:
  std::vector<std::uint8_t> without_gamma_;
  png_image image_{};
};

bool is_png(std::span<const std::uint8_t> file) {
  return file.size() >= std::size(kSignature) &&
         std::equal(std::begin(kSignature), std::end(kSignature), file.begin());
}

ImageHeader png_header(std::span<const std::uint8_t> file) {
  PngImage image(file);
  const auto exif = find_chunk(file, "eXIf");
  return {{std::int64_t(image->height), std::int64_t(image->width), 3},
          exif ? exif_orientation(exif->data) : 1};
}

DecodedPart decode_png(std::span<const std::uint8_t> file, const ImagePart& part,
                       std::int64_t /*height*/, std::int64_t /*width*/,
                       std::vector<std::uint8_t>& to) {
  PngImage image(file);
  // No byte of a file can hold more pixels than this, since compression has a limit. The check
  // comes before memory is allocated.
  constexpr std::size_t kMostPixelsOfByte = 1032 * 8;
  if (std::size_t(image->height) * image->width / kMostPixelsOfByte > file.size()) {
    throw Error(ErrorCode::kDataLoss, "it is too short for its number of pixels");
  }
  to.resize(PNG_IMAGE_SIZE(*image));
  if (png_image_finish_read(&*image, nullptr, to.data(), 0, nullptr) == 0) image.fail();
  if (image.has_alpha()) show_on_black(to);
  return {std::int64_t(image->height), std::int64_t(image->width), part};
}

constexpr std::string_view kPngEndings[] = {".png"};

}  // namespace

const ImageFormat kPngFormat = {"PNG", kPngEndings, is_png, png_header, decode_png};

std::string png_of(std::span<const std::uint8_t> pixels, std::int64_t height, std::int64_t width) {
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
  return file;
}

void write_png(const std::string& path, std::span<const std::uint8_t> pixels, std::int64_t height,
               std::int64_t width) {
  write_text_file("image", path, png_of(pixels, height, width));
}

}  // namespace paceline
