#include <algorithm>

#include "net/accept/offer.h"
#include "net/accept/preamble.h"
#include "paceline/error.h"
#include "tests/fuzz/targets.h"

namespace paceline::testing {

// From an unidentified peer, only these bytes are read, with which both sides begin.
void fuzz_preamble(Bytes bytes) {
  std::array<std::byte, kOfferBytes> all{};
  std::ranges::copy(std::as_bytes(bytes.first(std::min(bytes.size(), all.size()))), all.begin());
  if (const auto offer = decode_offer(all); offer && offer->socket_name().size() != 41) {
    __builtin_trap();
  }
  const auto first = std::span<const std::byte>(all).first<kPreambleBytes>();
  try {
    if (!std::ranges::equal(encode(decode_preamble(first)), first)) __builtin_trap();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kDataLoss) throw;
  }
}

}  // namespace paceline::testing
