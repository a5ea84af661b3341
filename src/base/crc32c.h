// CRC-32C: the checksum of checkpoint files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace paceline {

/// The CRC with Castagnoli's polynomial (RFC 3720, appendix B.4) of all bytes so far, when `before`
/// is that of those before these. About 7 GB/s where the CPU has the instruction.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0);
/// The same without that instruction, for other CPUs and as its oracle.
std::uint32_t crc32c_by_table(std::span<const std::byte> bytes, std::uint32_t before = 0);

}  // namespace paceline
