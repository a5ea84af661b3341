// Why every frame over TCP has checksums, even over loopback: TCP's own 16-bit sum misses a bit
// flip that comes with a second one, and does not cover the memory of a network card or a switch.
// The header has its own checksum, so that no length is trusted unchecked. A payload's checksum is
// taken while the payload lies in a cache: just before the system copies it, and piece by piece as
// it arrives.
#include "net/tcp/tcp_header.h"

#include <fmt/format.h>

#include <cstring>

#include "base/crc32c.h"
#include "paceline/error.h"

namespace paceline {
namespace {

std::uint32_t number_at(const TcpHeaderBytes& bytes, std::size_t at) {
  std::uint32_t number = 0;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

std::uint32_t checksum_of_header(const TcpHeaderBytes& bytes) {
  return crc32c(std::span(bytes).first<kFrameHeaderBytes>());
}

/// Checks the header's checksum. Bytes that begin with another magic are not a frame; `decode`
/// reports that.
void check_header(const TcpHeaderBytes& bytes) {
  const std::uint32_t magic = number_at(bytes, 0), sent = number_at(bytes, kFrameHeaderBytes);
  if (magic == kFrameMagic)
    throw Error(ErrorCode::kDataLoss,
                "a frame without checksums: the other side runs an older version of Paceline");
  const std::uint32_t checksum = checksum_of_header(bytes);
  if (magic != kTcpFrameMagic || checksum == sent) return;
  throw Error(ErrorCode::kDataLoss,
              fmt::format("the header of a frame was changed on its way: its checksum is {:08x}, "
                          "and {:08x} was sent",
                          checksum, sent));
}

}  // namespace

TcpHeaderBytes encode_tcp(const FrameHeader& header) {
  TcpHeaderBytes bytes;
  encode(header, std::span(bytes).first<kFrameHeaderBytes>(), kTcpFrameMagic);
  const std::uint32_t checksum = checksum_of_header(bytes);
  std::memcpy(bytes.data() + kFrameHeaderBytes, &checksum, sizeof checksum);
  return bytes;
}

FrameHeader decode_tcp(const TcpHeaderBytes& bytes) {
  check_header(bytes);
  return decode(std::span(bytes).first<kFrameHeaderBytes>(), kMaxPayloadBytes, kTcpFrameMagic);
}

void check_payload(const FrameHeader& header, std::uint32_t checksum, std::uint32_t sent) {
  if (checksum == sent) return;
  throw Error(ErrorCode::kDataLoss,
              fmt::format("the {} bytes of a frame of type {} were changed on their way: their "
                          "checksum is {:08x}, and {:08x} was sent",
                          header.payload_bytes, header.type, checksum, sent));
}

}  // namespace paceline
