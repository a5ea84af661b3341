// An offer tells a caller how to reach the task at an address through shared memory. docs/wire.md
// has its format.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "net/accept/preamble.h"

namespace paceline {

constexpr std::size_t kOfferBytes = 40;
constexpr std::uint16_t kOfferVersion = 2;

/// Both fields are random. All tasks of the host can see the name; only callers that asked get the
/// token.
struct Offer {
  Preamble::Token name{};
  Preamble::Token token{};

  /// Returns the name of the abstract Unix socket: "paceline-" and 32 hexadecimal digits.
  std::string socket_name() const;
};

std::array<std::byte, kOfferBytes> encode(const Offer& offer);
/// Returns nothing for an offer of another version, and for bytes that are not an offer.
std::optional<Offer> decode_offer(std::span<const std::byte, kOfferBytes> bytes);

}  // namespace paceline
