// The first bytes of every socket, which say what it is for: one of the two TCP sockets of a
// connection, a request for an offer, or the Unix socket of an shm connection. docs/wire.md has the
// format.
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
  /// A random token, the same on both sockets of a connection. For kSharedMemory it is the token of
  /// the offer; for kOffer it means nothing.
  Token token{};
};

Preamble::Token random_token();
std::array<std::byte, kPreambleBytes> encode(const Preamble& preamble);
/// Throws kDataLoss for bytes that are not a preamble of this version.
Preamble decode_preamble(std::span<const std::byte, kPreambleBytes> bytes);

}  // namespace paceline
