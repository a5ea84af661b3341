// A frame: a fixed header and a payload, the unit of every link. Format: docs/wire.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace paceline {

constexpr std::uint32_t kFrameMagic = 0x314e4c50;  // "PLN1" in bytes
constexpr std::size_t kFrameHeaderBytes = 32;
/// No payload is longer; a header that says so ends the connection.
constexpr std::uint32_t kMaxPayloadBytes = 1u << 26;
/// Before the handshake is over.
constexpr std::uint32_t kMaxHelloBytes = 1u << 16;

/// On the wire: little-endian, in this order, no padding. What type, id and numbers mean is the
/// business of the room above (params/message.h).
struct FrameHeader {
  std::uint32_t payload_bytes = 0;
  std::uint16_t type = 0;
  std::uint16_t flags = 0;
  std::uint32_t id = 0;      // which piece of which variable
  std::uint64_t offset = 0;  // bytes into that piece
  std::uint64_t step = 0;
};

/// magic, then the fields. Over TCP checksums follow them (tcp/tcp_header.h).
void encode(const FrameHeader& header, std::span<std::byte, kFrameHeaderBytes> bytes,
            std::uint32_t magic = kFrameMagic);
std::array<std::byte, kFrameHeaderBytes> encode(const FrameHeader& header);
/// Throws kDataLoss on another magic or a payload longer than `most_payload_bytes`.
FrameHeader decode(std::span<const std::byte, kFrameHeaderBytes> bytes,
                   std::uint32_t most_payload_bytes, std::uint32_t magic = kFrameMagic);

}  // namespace paceline
