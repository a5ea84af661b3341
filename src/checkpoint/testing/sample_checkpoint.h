// A small model's checkpoint, written as its ps tasks would.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_index.h"
#include "checkpoint/checkpoint_save.h"

namespace paceline::testing {

/// Returns "embedding" (10,3), whose rows are split over the shards, and "bias" (3), both with
/// adam's slots; and "half" (2) bfloat16 and "scale" () with sgd.
std::vector<SavedVariable> sample_variables(int shards);
/// Returns the index of these variables, of worker 0 with the local variable "train/lstm/h" (2,2),
/// and of worker 1 without local variables.
CheckpointIndex sample_index(std::int64_t step, int shards);
/// Returns the saved value of element `element` of an array of a variable. Slots that count do not
/// have these values, but the step, or one more in the pieces after the first.
float sample_value(std::int64_t step, const std::string& variable, std::size_t array,
                   std::int64_t element);

/// Writes all files of the index, and sets their sizes and checksums in the index.
void write_sample_files(const std::string& folder, CheckpointIndex& index,
                        const Disk& disk = Disk::machine());
/// Saves the whole sample checkpoint. Returns its path.
std::string save_sample(const std::string& checkpoints, std::int64_t step, int shards,
                        const Disk& disk = Disk::machine());

}  // namespace paceline::testing
