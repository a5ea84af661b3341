// The costs of a TCP stream to the cores of this machine.
#pragma once

#include <cstddef>
#include <span>

namespace paceline {

/// The bytes that one core sends or receives in a second, the checksum of each frame included.
struct TcpRates {
  double send = 0, receive = 0;  // 0: not known
  bool operator==(const TcpRates&) const = default;
};

/// The cores that the ends of a stream run on: what one core hands to another comes out of its
/// caches, which may be far.
enum class StreamEnds { kOnTwoCores, kOnOneCore };

/// Measures them over loopback, from memory to memory, since the values of a job are larger than
/// caches.
class TcpMeter {
 public:
  /// The bytes that a measurement passes over.
  static constexpr std::size_t kBytes = std::size_t{72} << 20;

  /// Writes to the first kBytes of `memory`, which must outlive it.
  explicit TcpMeter(std::span<std::byte> memory) : memory_(memory.first(kBytes)) {}

  /// Takes about 30 ms, and counts the time of threads and not of clocks on the wall: other
  /// processes change little. Nothing is known where there is no loopback.
  TcpRates measure(StreamEnds ends) const;

 private:
  const std::span<std::byte> memory_;
};

}  // namespace paceline
