#include "net/accept/preamble.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <string>

#include "paceline/error.h"

namespace paceline {
namespace {

constexpr std::uint32_t kPreambleMagic = 0x4b4e4c50;  // "PLNK" in bytes

struct Layout {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t role;
  Preamble::Token token;
};
static_assert(sizeof(Layout) == kPreambleBytes);

}  // namespace

Preamble::Token random_token() {
  std::random_device device;
  Preamble::Token token;
  for (std::byte& b : token) b = std::byte(device());
  return token;
}

std::array<std::byte, kPreambleBytes> encode(const Preamble& preamble) {
  const Layout layout{kPreambleMagic, kPreambleVersion, std::uint16_t(preamble.role),
                      preamble.token};
  std::array<std::byte, kPreambleBytes> bytes;
  std::memcpy(bytes.data(), &layout, sizeof layout);
  return bytes;
}

Preamble decode_preamble(std::span<const std::byte, kPreambleBytes> bytes) {
  Layout layout;
  std::memcpy(&layout, bytes.data(), sizeof layout);
  if (layout.magic != kPreambleMagic)
    throw Error(ErrorCode::kDataLoss, "a caller does not speak Paceline's protocol");
  if (layout.version != kPreambleVersion)
    throw Error(ErrorCode::kDataLoss, "a caller speaks version " + std::to_string(layout.version) +
                                          " of the protocol, not " +
                                          std::to_string(kPreambleVersion));
  if (layout.role > std::uint16_t(SocketRole::kSharedMemory))
    throw Error(ErrorCode::kDataLoss, "a caller's socket has an unknown role");
  return {SocketRole(layout.role), layout.token};
}

}  // namespace paceline
