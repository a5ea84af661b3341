#include "data/jpeg_encode.h"

#include <cstddef>
#include <cstdio>
#include <cstdlib>
// libjpeg's header needs what is declared above.
#include <jpeglib.h>

namespace paceline {

// At a fault, libjpeg by default ends the process. The only possible fault here is a lack of
// memory.
std::vector<std::uint8_t> encode_jpeg(std::span<const std::uint8_t> pixels, std::int64_t height,
                                      std::int64_t width, int quality, int channels) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* bytes = nullptr;
  unsigned long count = 0;
  jpeg_mem_dest(&jpeg, &bytes, &count);
  jpeg.image_height = JDIMENSION(height);
  jpeg.image_width = JDIMENSION(width);
  jpeg.input_components = channels;
  jpeg.in_color_space = channels == 3 ? JCS_RGB : JCS_GRAYSCALE;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, quality, TRUE);
  jpeg_start_compress(&jpeg, TRUE);
  for (std::int64_t y = 0; y < height; ++y) {
    // libjpeg does not change the row, although its parameter is not const.
    auto* row = const_cast<JSAMPROW>(pixels.data() + y * width * channels);
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  std::vector<std::uint8_t> file(bytes, bytes + count);
  std::free(bytes);
  jpeg_destroy_compress(&jpeg);
  return file;
}

}  // namespace paceline
