// A frame as it travels over TCP: the header that every link has, the checksum of the header, the
// payload, and the payload's checksum. Both checksums are CRC-32C (base/crc32c.h). Format:
// docs/wire.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "net/frame.h"

namespace paceline {

constexpr std::uint32_t kTcpFrameMagic = 0x324e4c50;  // "PLN2" in bytes
constexpr std::size_t kTcpHeaderBytes = kFrameHeaderBytes + sizeof(std::uint32_t);
/// The checksum behind the payload.
constexpr std::size_t kTcpTrailerBytes = sizeof(std::uint32_t);
/// The bytes of a frame in addition to its payload.
constexpr std::size_t kTcpFramingBytes = kTcpHeaderBytes + kTcpTrailerBytes;
using TcpHeaderBytes = std::array<std::byte, kTcpHeaderBytes>;

TcpHeaderBytes encode_tcp(const FrameHeader& header);
/// Throws kDataLoss if the header was changed on its way, is not a header, or has a payload of more
/// than kMaxPayloadBytes.
FrameHeader decode_tcp(const TcpHeaderBytes& bytes);
/// Throws kDataLoss if the payload's checksum differs from the sent one.
void check_payload(const FrameHeader& header, std::uint32_t checksum, std::uint32_t sent);

}  // namespace paceline
