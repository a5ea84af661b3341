// The facts of this machine: its roof, and the pace of steps on it.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "paceline/tensor.h"
#include "predict/cache_file.h"
#include "predict/host_cache.h"
#include "predict/pace_cache.h"
#include "predict/roof.h"

namespace paceline {

/// The best roofs of this machine that earlier runs have measured, by the type of the products and
/// the number of threads.
class RoofCache {
 public:
  using Measure = std::function<Roof(DType precision, int threads)>;
  /// Nothing is kept when the path is empty.
  explicit RoofCache(std::string path, Measure measure = measure_roof)
      : file_(std::move(path), "roofs"), measure_(std::move(measure)) {}

  std::optional<Roof> find(DType precision, int threads) const;
  /// Measures the roof and keeps it. Of rates that were kept before, the higher ones stay: whatever
  /// ran beside a measurement made it lower, and never higher. Throws as measure_roof.
  Roof measure(DType precision, int threads) const;
  /// Finds it, or measures it. One that was measured beside other programs is measured again.
  Roof roof(DType precision, int threads) const;

 private:
  const CacheFile file_;
  const Measure measure_;
};

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

/// This machine as a host of a prediction, as it was measured in the last hour (HostCache). It is
/// measured in 0.3 s unless that was done within ten minutes, and nothing ran beside it.
SeenHost this_host();
/// Says when it was measured last, and how fast it was; empty when that is not noted.
std::string noted_host_text();
/// The same with its roof of now, which is measured in 0.3 s.
PredictedHost measured_host();
/// The same with the median of three roofs of now, in 0.9 s, since one of them may be off. Keeps it
/// for this_host().
SeenHost host_of_moment();
/// The best roofs that are kept in the cache folder, to which runs are compared.
RoofCache this_roof_cache();
/// The paces that are kept in the cache folder.
PaceCache this_pace_cache();

}  // namespace paceline
