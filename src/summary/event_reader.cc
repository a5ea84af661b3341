#include "summary/event_reader.h"

#include <fmt/format.h>

#include <cstring>
#include <span>

#include "paceline/error.h"
#include "summary/event_record.h"

namespace paceline {
namespace {

constexpr std::uint64_t kMostEventBytes = std::uint64_t{1} << 28;

template <typename T>
T number_at(const std::string& bytes, std::size_t offset) {
  T number;
  std::memcpy(&number, bytes.data() + offset, sizeof(T));
  return number;
}

}  // namespace

void EventReader::refuse(const std::string& why) const {
  throw Error(ErrorCode::kDataLoss,
              fmt::format("{}: record at byte {}: {}", file_.path(), offset_, why));
}

std::string EventReader::read(std::uint64_t offset, std::uint64_t size) const {
  std::string bytes(size, '\0');
  file_.read_at(offset, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

std::optional<SummaryEvent> EventReader::next() {
  if (!follows(kRecordHeadBytes)) return std::nullopt;
  const std::string head = read(offset_, kRecordHeadBytes);
  const auto size = number_at<std::uint64_t>(head, 0);
  if (masked_checksum(std::string_view(head).substr(0, sizeof(size))) !=
      number_at<std::uint32_t>(head, sizeof(size))) {
    refuse("the checksum of its length differs");
  }
  if (size > kMostEventBytes) {
    refuse(fmt::format("{} bytes; at most {} are read", size, kMostEventBytes));
  }
  if (!follows(kRecordHeadBytes + size + kRecordTailBytes)) return std::nullopt;
  const std::string data = read(offset_ + kRecordHeadBytes, size);
  const std::string tail = read(offset_ + kRecordHeadBytes + size, kRecordTailBytes);
  if (masked_checksum(data) != number_at<std::uint32_t>(tail, 0)) refuse("its checksum differs");
  try {
    SummaryEvent event = SummaryEvent::decode(data);
    offset_ += kRecordHeadBytes + size + kRecordTailBytes;
    return event;
  } catch (const Error& error) {
    refuse(error.what());
  }
}

}  // namespace paceline
