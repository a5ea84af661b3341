#include "summary/event_record.h"

#include <bit>
#include <cstring>
#include <span>

#include "base/crc32c.h"

namespace paceline {
namespace {

template <typename T>
std::string bytes_of(T number) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &number, sizeof(T));
  return bytes;
}

}  // namespace

std::uint32_t masked_checksum(std::string_view bytes) {
  constexpr std::uint32_t kShift = 0xa282ead8;
  return std::rotr(crc32c(std::as_bytes(std::span(bytes))), 15) + kShift;
}

std::string make_record(std::string_view data) {
  std::string record = bytes_of(std::uint64_t(data.size()));
  record += bytes_of(masked_checksum(record));
  record += data;
  return record + bytes_of(masked_checksum(data));
}

}  // namespace paceline
