// The place in the data as the numbers of a checkpoint.
#pragma once

#include <cstdint>
#include <string>

#include "data/ticket_stream.h"
#include "paceline/task_position.h"

namespace paceline {

/// The place that NAME.epoch, NAME.record, NAME.late (how many are) and NAME.late.1, … tell of data
/// with `size` records in an epoch. When NAME.size says that an epoch had another number of
/// records, the same part of the epoch is behind. Throws kInvalidArgument for numbers that cannot
/// be.
DataPlace data_place(const TaskPosition& position, const std::string& name, std::int64_t size);
/// Writes these numbers.
void tell_place(const DataPlace& place, const std::string& name, std::int64_t size,
                TaskPosition& to);

}  // namespace paceline
