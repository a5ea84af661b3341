#include "params/wire/record_messages.h"

#include "params/wire/record_fields.h"

namespace paceline {

void fields(auto& wire, Of<RecordWish> auto& wish) { wire(wish.records, wish.limit, wish.starves); }

void fields(auto& wire, Of<GivenRecords> auto& given) { wire(given.ranges, given.over); }

std::vector<std::byte> encode(const RecordWish& wish) { return encode_fields(wish); }
std::vector<std::byte> encode(const GivenRecords& given) { return encode_fields(given); }

RecordWish decode_record_wish(std::span<const std::byte> payload) {
  return decode_fields<RecordWish>(payload, "ask_records");
}

GivenRecords decode_given_records(std::span<const std::byte> payload) {
  const auto given = decode_fields<GivenRecords>(payload, "records");
  check_ranges(given.ranges, "records");
  return given;
}

}  // namespace paceline
