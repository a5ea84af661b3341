// What is a worker's own at one moment, as it is saved and as it goes over the wire.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "checkpoint/safetensors_writer.h"
#include "paceline/task_position.h"

namespace paceline {

struct TaskState {
  int worker = 0;
  std::int64_t step = 0;  // own steps made: the next one's number
  TaskPosition position;
  std::vector<NamedTensor> local;  // variables
};

/// Without the local variables when with them it is longer than a message may be.
std::vector<std::byte> encode(const TaskState& state);
/// Throws kDataLoss.
TaskState decode_task_state(std::span<const std::byte> payload);

}  // namespace paceline
