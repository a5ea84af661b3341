// The first bytes of every TCP socket: which of the two sockets of which connection it is.
// Format: docs/wire.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace paceline {

constexpr std::size_t kPreambleBytes = 24;
constexpr std::uint16_t kPreambleVersion = 1;

enum class SocketRole : std::uint16_t { kData = 0, kControl = 1 };

struct Preamble {
  using Token = std::array<std::byte, 16>;
  SocketRole role = SocketRole::kData;
  Token token{};  // random; the same for both sockets of a connection
};

Preamble::Token random_token();
std::array<std::byte, kPreambleBytes> encode(const Preamble& preamble);
/// Throws kDataLoss.
Preamble decode_preamble(std::span<const std::byte, kPreambleBytes> bytes);

}  // namespace paceline
