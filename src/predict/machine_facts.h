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

/// The best roofs of this machine that earlier runs measured, by the products' type and the number
/// of threads.
class RoofCache {
 public:
  using Measure = std::function<Roof(DType precision, int threads)>;
  /// Keeps nothing if the path is empty.
  explicit RoofCache(std::string path, Measure measure = measure_roof)
      : file_(std::move(path), "roofs"), measure_(std::move(measure)) {}

  std::optional<Roof> find(DType precision, int threads) const;
  /// Measures the roof and keeps it. For each rate, the highest measurement so far is kept, since a
  /// program that runs beside a measurement can only lower the rate. Throws as measure_roof does.
  Roof measure(DType precision, int threads) const;
  /// Returns the kept roof, or measures it. If the kept roof was measured beside other programs,
  /// measures it again.
  Roof roof(DType precision, int threads) const;

 private:
  const CacheFile file_;
  const Measure measure_;
};

/// The bytes per second that one core sends or receives over TCP while it also computes the
/// checksum of each frame.
struct TcpRates {
  double send = 0, receive = 0;  // 0: not known
  bool operator==(const TcpRates&) const = default;
};

/// Whether the ends of a stream run on one core or on two. On two cores, the receiver reads the
/// bytes from the caches of the sender's core, which may be far away.
enum class StreamEnds { kOnTwoCores, kOnOneCore };

/// Measures the rates over loopback, from memory to memory, since a job's values are larger than
/// caches.
class TcpMeter {
 public:
  /// The bytes that a measurement passes over.
  static constexpr std::size_t kBytes = std::size_t{72} << 20;

  /// Writes to the first kBytes of `memory`, which must outlive the meter.
  explicit TcpMeter(std::span<std::byte> memory) : memory_(memory.first(kBytes)) {}

  /// Takes about 30 ms. Counts the time of threads and not wall-clock time, so other processes
  /// change little. If there is no loopback, the rates are 0.
  TcpRates measure(StreamEnds ends) const;

 private:
  const std::span<std::byte> memory_;
};

/// Returns this machine as a host of a prediction, from the measurements of the last hour
/// (HostCache). If the last ten minutes have no undisturbed measurement, first measures, which
/// takes 0.3 s.
SeenHost this_host();
/// Says when this machine was last measured, and how fast it was; empty if no measurement of the
/// last hour is kept.
std::string noted_host_text();
/// Returns this machine with its current roof; measuring that roof takes 0.3 s.
PredictedHost measured_host();
/// Returns this machine with the median of three current roofs, since a single one may be wrong;
/// takes 0.9 s. Keeps the result for this_host().
SeenHost host_of_moment();
/// The best roofs in the cache folder, to which runs are compared.
RoofCache this_roof_cache();
/// The paces in the cache folder.
PaceCache this_pace_cache();

}  // namespace paceline
