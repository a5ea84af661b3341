// The state of one worker at one moment, as it is saved and as it goes over the wire.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
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

/// The most bytes of a worker's local variables that go over the wire.
constexpr std::size_t kMostLocalBytes = std::size_t{1} << 30;
/// Returns why the local variables are left out of the message, naming the task, the largest of
/// them and its bytes; empty when they are not.
std::string why_left_out(const TaskState& state, std::size_t most_bytes = kMostLocalBytes);

/// Returns the payload, without the local variables when they are left out.
std::vector<std::byte> encode(const TaskState& state);
/// Throws kDataLoss.
TaskState decode_task_state(std::span<const std::byte> payload);

/// A state goes in frames of at most kStateFrameBytes; all but the last have this in their flags.
constexpr std::uint16_t kStateGoesOn = 1;
constexpr std::size_t kStateFrameBytes = std::size_t{1} << 20;

/// Calls send(flags, bytes) for each of them.
template <typename F>
void for_state_frames(std::span<const std::byte> state, F&& send) {
  while (state.size() > kStateFrameBytes) {
    send(kStateGoesOn, state.first(kStateFrameBytes));
    state = state.subspan(kStateFrameBytes);
  }
  send(std::uint16_t{0}, state);
}

/// Puts the frames of one peer together.
class StateFrames {
 public:
  /// The most bytes of a state, with the parts that are no local variables.
  static constexpr std::size_t kMostBytes = kMostLocalBytes + (std::size_t{1} << 24);
  explicit StateFrames(std::size_t most_bytes = kMostBytes) : most_bytes_(most_bytes) {}
  /// Returns the payload of the state when this was its last frame. Throws kDataLoss when it is too
  /// long.
  std::optional<std::vector<std::byte>> add(std::uint16_t flags,
                                            std::span<const std::byte> payload);

 private:
  std::size_t most_bytes_;
  std::vector<std::byte> so_far_;
};

}  // namespace paceline
