#include "net/accept/offer.h"

#include <cstring>

namespace paceline {
namespace {

constexpr std::uint32_t kOfferMagic = 0x4f4e4c50;  // "PLNO" in bytes

struct OfferLayout {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t reserved;
  Preamble::Token name, token;
};
static_assert(sizeof(OfferLayout) == kOfferBytes);

}  // namespace

std::string Offer::socket_name() const {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text = "paceline-";
  for (const std::byte one : name) {
    text += kDigits[std::size_t(one) >> 4];
    text += kDigits[std::size_t(one) & 15];
  }
  return text;
}

std::array<std::byte, kOfferBytes> encode(const Offer& offer) {
  const OfferLayout layout{kOfferMagic, kOfferVersion, 0, offer.name, offer.token};
  std::array<std::byte, kOfferBytes> bytes;
  std::memcpy(bytes.data(), &layout, sizeof layout);
  return bytes;
}

std::optional<Offer> decode_offer(std::span<const std::byte, kOfferBytes> bytes) {
  OfferLayout layout;
  std::memcpy(&layout, bytes.data(), sizeof layout);
  if (layout.magic != kOfferMagic || layout.version != kOfferVersion) return std::nullopt;
  return Offer{layout.name, layout.token};
}

}  // namespace paceline
