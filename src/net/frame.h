// A frame is a header of fixed size and a payload. Every link carries frames. docs/wire.md has
// their format.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace paceline {

constexpr std::uint32_t kFrameMagic = 0x314e4c50;  // "PLN1" in bytes
constexpr std::size_t kFrameHeaderBytes = 32;
/// The longest payload. A header that claims more ends the connection.
constexpr std::uint32_t kMaxPayloadBytes = 1u << 26;
/// The longest payload until the handshake is over. It has room for a hello that names the data's
/// classes or words.
constexpr std::uint32_t kMaxHelloBytes = 1u << 20;

/// On the wire, after the magic, the fields are little-endian, in this order, without padding. The
/// users of a link define what the fields mean (params/wire/message.h).
struct FrameHeader {
  std::uint32_t payload_bytes = 0;
  std::uint16_t type = 0;
  std::uint16_t flags = 0;
  std::uint32_t id = 0;      // which piece of which variable
  std::uint64_t offset = 0;  // bytes into that piece
  std::uint64_t step = 0;
};

/// Writes the magic, then the fields. Over TCP, checksums follow (tcp/tcp_header.h).
void encode(const FrameHeader& header, std::span<std::byte, kFrameHeaderBytes> bytes,
            std::uint32_t magic = kFrameMagic);
std::array<std::byte, kFrameHeaderBytes> encode(const FrameHeader& header);
/// Throws kDataLoss for another magic or a payload longer than `most_payload_bytes`.
FrameHeader decode(std::span<const std::byte, kFrameHeaderBytes> bytes,
                   std::uint32_t most_payload_bytes, std::uint32_t magic = kFrameMagic);

}  // namespace paceline
