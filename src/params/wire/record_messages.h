// The messages by which a job shares out records among its workers. Format: docs/wire.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "paceline/task_position.h"

namespace paceline {

/// A worker's wish for the next records.
struct RecordWish {
  std::int64_t records = 0;  // 0: no records beyond those that earlier wishes asked for
  std::int64_t limit = 0;    // only records at places below this are wanted
  /// The worker holds less than a batch, and makes no step before it gets more.
  bool starves = false;
  bool operator==(const RecordWish&) const = default;
};

/// The answer to a wish.
struct GivenRecords {
  std::vector<RecordRange> ranges;
  bool over = false;  // there will be no more
  bool operator==(const GivenRecords&) const = default;
};

std::vector<std::byte> encode(const RecordWish& wish);
std::vector<std::byte> encode(const GivenRecords& given);
/// All decoders throw kDataLoss naming the message.
RecordWish decode_record_wish(std::span<const std::byte> payload);
GivenRecords decode_given_records(std::span<const std::byte> payload);

}  // namespace paceline
