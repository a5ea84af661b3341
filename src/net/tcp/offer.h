// How a caller learns where the task at an address can be reached through shared memory.
// Format: docs/wire.md.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "net/tcp/preamble.h"

namespace paceline {

constexpr std::size_t kOfferBytes = 40;
constexpr std::uint16_t kOfferVersion = 2;

/// Both are random. The name is known to the host, the token to those who asked.
struct Offer {
  Preamble::Token name{};
  Preamble::Token token{};

  /// The abstract Unix socket: "paceline-" and 32 hexadecimal digits.
  std::string socket_name() const;
};

std::array<std::byte, kOfferBytes> encode(const Offer& offer);
/// None: of another version, or no offer at all.
std::optional<Offer> decode_offer(std::span<const std::byte, kOfferBytes> bytes);

}  // namespace paceline
