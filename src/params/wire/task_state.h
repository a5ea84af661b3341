// The state of one worker at one moment, which is saved in checkpoints and sent in messages.
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
  std::int64_t step = 0;  // the number of own steps made, and so the number of the next one
  TaskPosition position;
  std::vector<NamedTensor> local;  // variables
};

/// The most bytes of a worker's local variables that go over the wire.
constexpr std::size_t kMostLocalBytes = std::size_t{1} << 30;
/// Returns a text that says why the message leaves out the local variables. The text names the
/// task, the largest of these variables and its bytes. Empty when the message has the local
/// variables.
std::string why_left_out(const TaskState& state, std::size_t most_bytes = kMostLocalBytes);

/// Returns the payload, without the local variables if they are left out (why_left_out).
std::vector<std::byte> encode(const TaskState& state);
/// Throws kDataLoss for a payload that is no state.
TaskState decode_task_state(std::span<const std::byte> payload);

/// A state travels in frames of at most kStateFrameBytes; all but the last have this flag.
constexpr std::uint16_t kStateGoesOn = 1;
constexpr std::size_t kStateFrameBytes = std::size_t{1} << 20;

/// Calls send(flags, bytes) for each frame.
template <typename F>
void for_state_frames(std::span<const std::byte> state, F&& send) {
  while (state.size() > kStateFrameBytes) {
    send(kStateGoesOn, state.first(kStateFrameBytes));
    state = state.subspan(kStateFrameBytes);
  }
  send(std::uint16_t{0}, state);
}

/// Puts together the frames of the states that one peer sends.
class StateFrames {
 public:
  /// The most bytes of a state, local variables and other parts together.
  static constexpr std::size_t kMostBytes = kMostLocalBytes + (std::size_t{1} << 24);
  explicit StateFrames(std::size_t most_bytes = kMostBytes) : most_bytes_(most_bytes) {}
  /// Adds a frame. Returns the state's payload if this frame was the last one. Throws kDataLoss
  /// when the state is too long.
  std::optional<std::vector<std::byte>> add(std::uint16_t flags,
                                            std::span<const std::byte> payload);

 private:
  std::size_t most_bytes_;
  std::vector<std::byte> so_far_;
};

}  // namespace paceline
