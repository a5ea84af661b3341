// CRC-32C: the checksum of checkpoint files, of event files and of frames over TCP.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace paceline {

/// Returns the CRC with Castagnoli's polynomial (RFC 3720, appendix B.4), by the fastest of
/// crc32c_methods(). If `before` is the CRC of earlier bytes, the result is that of the earlier
/// bytes followed by `bytes`.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0);

/// A method to compute the CRC.
struct Crc32cMethod {
  const char* name;
  std::uint32_t (*compute)(std::span<const std::byte> bytes, std::uint32_t before);
};
/// The methods that this processor can run, the fastest last. The first one takes a byte at a time,
/// and tests compare the others with it.
std::span<const Crc32cMethod> crc32c_methods();

}  // namespace paceline
