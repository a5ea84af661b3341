// Asks a receiver where a payload goes, and checks the answer.
#pragma once

#include <string>

#include "net/link.h"

namespace paceline {

/// Returns the receiver's place for the payload. Throws kInternal if the place does not have the
/// requested size.
inline std::span<std::byte> checked_place(Receiver& receiver, const FrameHeader& header) {
  if (header.payload_bytes == 0) return {};
  const std::span<std::byte> place = receiver.place_payload(header);
  if (place.size() != header.payload_bytes)
    throw Error(ErrorCode::kInternal, "a receiver gave " + std::to_string(place.size()) +
                                          " bytes of room for a payload of " +
                                          std::to_string(header.payload_bytes));
  return place;
}

}  // namespace paceline
