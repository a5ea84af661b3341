// The first bytes of every socket say what it is for: it is one of the two TCP sockets of a
// connection, it only asks for an offer, or it is the Unix socket of an shm connection. The format
// is in docs/wire.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace paceline {

constexpr std::size_t kPreambleBytes = 24;
constexpr std::uint16_t kPreambleVersion = 1;

enum class SocketRole : std::uint16_t { kData = 0, kControl = 1, kOffer = 2, kSharedMemory = 3 };

struct Preamble {
  using Token = std::array<std::byte, 16>;
  SocketRole role = SocketRole::kData;
  /// A random token that both sockets of a connection have; for kSharedMemory it is that of the
  /// offer.
  Token token{};
};

Preamble::Token random_token();
std::array<std::byte, kPreambleBytes> encode(const Preamble& preamble);
/// Throws kDataLoss for bytes that are no preamble of this version.
Preamble decode_preamble(std::span<const std::byte, kPreambleBytes> bytes);

}  // namespace paceline
