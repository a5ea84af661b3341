// The fields of ranges of records, for messages that have ranges.
#pragma once

#include <span>
#include <string>

#include "paceline/error.h"
#include "paceline/task_position.h"
#include "params/wire/message_fields.h"

namespace paceline {

void fields(auto& wire, Of<RecordRange> auto& range) { wire(range.first, range.end); }

/// Throws kDataLoss, naming the message, if a range is empty or begins below 0.
inline void check_ranges(std::span<const RecordRange> ranges, const char* message) {
  for (const RecordRange& range : ranges) {
    if (range.first >= 0 && range.end > range.first) continue;
    throw Error(ErrorCode::kDataLoss,
                std::string("[wire] ") + message + ": a range of records that is none");
  }
}

}  // namespace paceline
