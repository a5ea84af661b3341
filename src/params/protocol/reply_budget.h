// Limits the memory of the replies that wait for one worker. A plain state machine.
#pragma once

#include <cstddef>

namespace paceline {

/// Counts the bytes of replies that wait for one peer. A peer for which more than the limit would
/// wait reads too slowly, and loses its connection.
class ReplyBudget {
 public:
  /// The limit before the handshake.
  static constexpr std::size_t kBeforeHandshake = std::size_t{1} << 20;
  /// The bytes that a reply takes beside its payload: its block in memory, and its place in queues.
  static constexpr std::size_t kBesidePayload = 256;

  explicit ReplyBudget(std::size_t most_bytes = kBeforeHandshake) : most_bytes_(most_bytes) {}
  /// Sets the limit for the time after the handshake: 64 MiB, and twice the values and slots of the
  /// ps.
  void allow_values(std::size_t bytes) { most_bytes_ = 2 * bytes + (std::size_t{64} << 20); }

  /// Returns the charge for a reply that has this much memory for its payload.
  static std::size_t charge_of(std::size_t memory) { return memory + kBesidePayload; }
  /// Returns false, and charges nothing, if the replies would then exceed the limit.
  bool charge(std::size_t memory) {
    if (waiting_ + charge_of(memory) > most_bytes_) return false;
    waiting_ += charge_of(memory);
    return true;
  }
  /// Releases the charge of a reply that was sent, or that will not be sent.
  void release(std::size_t memory) { waiting_ -= charge_of(memory); }
  std::size_t waiting_bytes() const { return waiting_; }
  /// The limit, which is also the most memory that is kept for reuse.
  std::size_t most_bytes() const { return most_bytes_; }

 private:
  std::size_t most_bytes_;
  std::size_t waiting_ = 0;
};

}  // namespace paceline
