// Writes the place in the data as numbers of a checkpoint, and reads it.
#pragma once

#include <cstdint>
#include <string>

#include "data/ticket_stream.h"
#include "paceline/task_position.h"

namespace paceline {

/// Returns the place in the data NAME, with `size` records in an epoch, from the numbers of a
/// checkpoint: NAME.epoch, NAME.record, NAME.late (how many records are late) and NAME.late.1, … If
/// NAME.size says that epochs had another number of records, returns the place behind the same part
/// of the epoch. Throws kInvalidArgument for impossible numbers.
DataPlace data_place(const TaskPosition& position, const std::string& name, std::int64_t size);
/// Writes the place as these numbers.
void tell_place(const DataPlace& place, const std::string& name, std::int64_t size,
                TaskPosition& to);

}  // namespace paceline
