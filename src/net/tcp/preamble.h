// The first bytes of every socket: which of the two TCP sockets of which connection it is, that it
// only asks for an offer, or that it is the Unix socket of an shm connection.
// Format: docs/wire.md.
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
  Token token{};  // random; the same for both sockets of a connection; of kSharedMemory, as offered
};

Preamble::Token random_token();
std::array<std::byte, kPreambleBytes> encode(const Preamble& preamble);
/// Throws kDataLoss.
Preamble decode_preamble(std::span<const std::byte, kPreambleBytes> bytes);

}  // namespace paceline
