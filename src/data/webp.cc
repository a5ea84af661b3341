#include <fmt/format.h>
#include <webp/decode.h>

#include <algorithm>
#include <string_view>

#include "data/image_part.h"
#include "data/orientation.h"
#include "paceline/error.h"

namespace paceline {
namespace {

constexpr std::size_t kFileHeader = 12;  // "RIFF", the size, "WEBP"
constexpr std::size_t kChunkHeader = 8;  // the type, the size

std::string_view text_at(std::span<const std::uint8_t> file, std::size_t at) {
  return {reinterpret_cast<const char*>(file.data() + at), 4};
}

bool is_webp(std::span<const std::uint8_t> file) {
  return file.size() >= kFileHeader && text_at(file, 0) == "RIFF" && text_at(file, 8) == "WEBP";
}

int orientation_of(std::span<const std::uint8_t> file) {
  std::size_t at = kFileHeader;
  while (at + kChunkHeader <= file.size()) {
    std::size_t size = 0;
    for (std::size_t i = 0; i < 4; ++i) size |= std::size_t(file[at + 4 + i]) << 8 * i;
    const auto data = file.subspan(at + kChunkHeader);
    if (size > data.size()) return 1;
    if (text_at(file, at) == "EXIF") return exif_orientation(data.first(size));
    at += kChunkHeader + size + size % 2;
  }
  return 1;
}

void check_webp(VP8StatusCode status) {
  constexpr std::string_view kFaults[] = {"",
                                          "there is no memory for it",
                                          "libwebp cannot be called like this",
                                          "it is corrupt",
                                          "it has a feature that libwebp does not read",
                                          "it was suspended",
                                          "it was ended",
                                          "it is truncated"};
  if (status == VP8_STATUS_OK) return;
  throw Error(ErrorCode::kDataLoss,
              std::string(kFaults[std::min<std::size_t>(status, std::size(kFaults) - 1)]));
}

WebPBitstreamFeatures features_of(std::span<const std::uint8_t> file) {
  WebPBitstreamFeatures features{};
  check_webp(WebPGetFeatures(file.data(), file.size(), &features));
  if (features.has_animation != 0) {
    throw Error(ErrorCode::kDataLoss, "it is an animation; of WebP only single images are read");
  }
  return features;
}

ImageHeader webp_header(std::span<const std::uint8_t> file) {
  const WebPBitstreamFeatures features = features_of(file);
  return {{features.height, features.width, 3}, orientation_of(file)};
}

DecodedPart decode_webp(std::span<const std::uint8_t> file, const ImagePart& part,
                        std::int64_t /*height*/, std::int64_t /*width*/,
                        std::vector<std::uint8_t>& to) {
  const WebPBitstreamFeatures features = features_of(file);
  const bool alpha = features.has_alpha != 0;
  const int channels = alpha ? 4 : 3;
  to.resize(std::size_t(features.height) * std::size_t(features.width) * std::size_t(channels));
  WebPDecoderConfig config;
  WebPInitDecoderConfig(&config);
  config.output.colorspace = alpha ? MODE_RGBA : MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {
      .rgba = to.data(), .stride = features.width * channels, .size = to.size()};
  check_webp(WebPDecode(file.data(), file.size(), &config));
  if (alpha) show_on_black(to);
  return {features.height, features.width, part};
}

constexpr std::string_view kWebpEndings[] = {".webp"};

}  // namespace

const ImageFormat kWebpFormat = {"WebP", kWebpEndings, is_webp, webp_header, decode_webp};

}  // namespace paceline
