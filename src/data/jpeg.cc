// libjpeg reports faults by a jump that skips its callers. So that the jump skips no C++ object,
// all objects live outside the function that sets the jump's target.
#include <csetjmp>
#include <cstddef>
#include <cstdio>
// libjpeg's headers need what is declared above.
#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "data/image_part.h"
#include "data/orientation.h"
#include "paceline/error.h"

namespace paceline {
namespace {

constexpr std::int64_t kScales[] = {1, 2, 4, 8};  // eighths; others have no vectorised code
constexpr std::uint8_t kWhite = 255;
constexpr int kExifMarker = JPEG_APP0 + 1;

struct Decoder {
  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  std::jmp_buf back{};
  char message[JMSG_LENGTH_MAX] = {};

  explicit Decoder(std::span<const std::uint8_t> bytes) : file(bytes) {
    jpeg.err = jpeg_std_error(&errors);
    jpeg.client_data = this;
    errors.error_exit = [](j_common_ptr common) { leave(common); };
    errors.emit_message = [](j_common_ptr common, int level) { warn(common, level); };
  }
  ~Decoder() { jpeg_destroy_decompress(&jpeg); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  [[noreturn]] static void leave(j_common_ptr common) {
    auto* const self = static_cast<Decoder*>(common->client_data);
    common->err->format_message(common, self->message);
    std::longjmp(self->back, 1);
  }
  // Data that ends too soon is a fault, although libjpeg would only fill the rest with grey. Other
  // warnings concern bytes that nobody needs.
  static void warn(j_common_ptr common, int level) {
    const int code = common->err->msg_code;
    if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER)) leave(common);
  }

  bool read_header() {
    jpeg_create_decompress(&jpeg);
    jpeg_mem_src(&jpeg, file.data(), static_cast<unsigned long>(file.size()));
    jpeg_save_markers(&jpeg, kExifMarker, 0xFFFF);
    jpeg_read_header(&jpeg, TRUE);
    return true;
  }
  [[noreturn]] void fail() const { throw Error(ErrorCode::kDataLoss, message); }

  std::span<const std::uint8_t> file;
};

// The two functions that set the jump's target have no objects of their own to destroy.
bool header_is_read(Decoder& decoder) {
  if (setjmp(decoder.back) != 0) return false;
  return decoder.read_header();
}

/// The part of the scaled image that is decoded, and the memory that it goes to.
struct Window {
  JDIMENSION left = 0, top = 0, width = 0, height = 0;
  std::vector<std::uint8_t>* to = nullptr;
  int channels = 3;
};

bool window_is_read(Decoder& decoder, Window& window) {
  if (setjmp(decoder.back) != 0) return false;
  jpeg_decompress_struct& jpeg = decoder.jpeg;
  jpeg_start_decompress(&jpeg);
  jpeg_crop_scanline(&jpeg, &window.left, &window.width);
  const std::size_t row = std::size_t(window.width) * std::size_t(window.channels);
  window.to->resize(row * window.height);
  if (window.top > 0) jpeg_skip_scanlines(&jpeg, window.top);
  for (JDIMENSION y = 0; y < window.height; ++y) {
    JSAMPROW line = window.to->data() + y * row;
    jpeg_read_scanlines(&jpeg, &line, 1);
  }
  return true;
}

// Returns the smallest scale, in eighths, at which the part is not smaller than the result.
std::int64_t scale_for(const ImagePart& part, std::int64_t height, std::int64_t width) {
  for (const std::int64_t eighths : kScales) {
    const double scale = double(eighths) / 8;
    if (part.width * scale >= double(width) && part.height * scale >= double(height))
      return eighths;
  }
  return 8;
}

// Converts CMYK images. They are stored inverted, as Adobe's programs write them.
void inks_to_colours(std::vector<std::uint8_t>& pixels) {
  std::size_t to = 0;
  for (std::size_t i = 0; i + 3 < pixels.size(); i += 4) {
    const int black = pixels[i + 3];
    for (std::size_t c = 0; c < 3; ++c) {
      pixels[to++] = std::uint8_t(pixels[i + c] * black / kWhite);
    }
  }
  pixels.resize(to);
}

int orientation_of(const jpeg_decompress_struct& jpeg) {
  constexpr std::string_view kExif("Exif\0\0", 6);
  for (const auto* marker = jpeg.marker_list; marker != nullptr; marker = marker->next) {
    const std::span<const std::uint8_t> data(marker->data, marker->data_length);
    if (data.size() < kExif.size() || !std::equal(kExif.begin(), kExif.end(), data.begin()))
      continue;
    return exif_orientation(data.subspan(kExif.size()));
  }
  return 1;
}

bool is_jpeg(std::span<const std::uint8_t> file) {
  return file.size() > 3 && file[0] == 0xFF && file[1] == 0xD8 && file[2] == 0xFF;
}

ImageHeader jpeg_header(std::span<const std::uint8_t> file) {
  Decoder decoder(file);
  if (!header_is_read(decoder)) decoder.fail();
  const jpeg_decompress_struct& jpeg = decoder.jpeg;
  return {{std::int64_t(jpeg.image_height), std::int64_t(jpeg.image_width), 3},
          orientation_of(jpeg)};
}

DecodedPart decode_jpeg(std::span<const std::uint8_t> file, const ImagePart& part,
                        std::int64_t height, std::int64_t width, std::vector<std::uint8_t>& to) {
  Decoder decoder(file);
  if (!header_is_read(decoder)) decoder.fail();
  jpeg_decompress_struct& jpeg = decoder.jpeg;
  const bool inks = jpeg.jpeg_color_space == JCS_CMYK || jpeg.jpeg_color_space == JCS_YCCK;
  jpeg.out_color_space = inks ? JCS_CMYK : JCS_RGB;
  jpeg.scale_num = static_cast<unsigned>(scale_for(part, height, width));
  jpeg.scale_denom = 8;
  jpeg_calc_output_dimensions(&jpeg);
  const double across = double(jpeg.output_width) / double(jpeg.image_width);
  const double down = double(jpeg.output_height) / double(jpeg.image_height);
  ImagePart scaled = {part.left * across, part.top * down, part.width * across, part.height * down};
  const auto first = [](double from) { return JDIMENSION(std::floor(from)); };
  const auto after = [](double end, JDIMENSION most) {
    return std::min(JDIMENSION(std::ceil(end)), most);
  };
  Window window = {
      .left = first(scaled.left), .top = first(scaled.top), .to = &to, .channels = inks ? 4 : 3};
  window.width = after(scaled.left + scaled.width, jpeg.output_width) - window.left;
  window.height = after(scaled.top + scaled.height, jpeg.output_height) - window.top;
  if (!window_is_read(decoder, window)) decoder.fail();
  if (inks) inks_to_colours(to);
  scaled.left -= double(window.left);
  scaled.top -= double(window.top);
  return {std::int64_t(window.height), std::int64_t(window.width), scaled};
}

constexpr std::string_view kJpegEndings[] = {".jpg", ".jpeg", ".jpe", ".jfif"};

}  // namespace

const ImageFormat kJpegFormat = {"JPEG", kJpegEndings, is_jpeg, jpeg_header, decode_jpeg};

}  // namespace paceline
