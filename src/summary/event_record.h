// The layout of records in an event file: length (8 bytes), its checksum (4), the data, its
// checksum (4); numbers are little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace paceline {

constexpr std::size_t kRecordHeadBytes = 12, kRecordTailBytes = 4;

/// Returns the CRC-32C, rotated and with a constant added, as the format asks. Without this, a
/// checksum of bytes that hold checksums would be a weak one.
std::uint32_t masked_checksum(std::string_view bytes);
/// Returns the record that holds `data`.
std::string make_record(std::string_view data);

}  // namespace paceline
