#include "params/wire/fields.h"

#include <fmt/format.h>

#include "paceline/error.h"

namespace paceline {

void WireWriter::put_text(std::string_view text) {
  if (text.size() > kMostTextBytes) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("[wire] a text of {} bytes is longer than {}: {}…", text.size(),
                            kMostTextBytes, text.substr(0, 60)));
  }
  put(std::uint16_t(text.size()));
  put_bytes(std::as_bytes(std::span(text)));
}

std::size_t WireReader::get_count(std::size_t least_bytes) {
  const std::size_t count = get<std::uint32_t>();
  if (count > bytes_.size() / least_bytes) fail(fmt::format("it cannot hold {} items", count));
  return count;
}

std::string WireReader::get_text() {
  const std::size_t length = get<std::uint16_t>();
  const std::span<const std::byte> bytes = take(length, 1);
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void WireReader::end() const {
  if (!bytes_.empty()) fail(fmt::format("{} bytes are left over", bytes_.size()));
}

void WireReader::fail(std::string_view why) const {
  throw Error(ErrorCode::kDataLoss, fmt::format("[wire] bad message '{}': {}", message_, why));
}

std::span<const std::byte> WireReader::take(std::size_t count, std::size_t size) {
  if (count > bytes_.size() / size) {
    fail(fmt::format("{} × {} bytes wanted, {} there", count, size, bytes_.size()));
  }
  const std::span<const std::byte> taken = bytes_.first(count * size);
  bytes_ = bytes_.subspan(count * size);
  return taken;
}

}  // namespace paceline
