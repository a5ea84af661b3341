// The content of one record of an event file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace paceline {

/// How a tensor's values are distributed, in buckets of equal width from the least to the greatest
/// value. Values that are not finite are left out.
struct Histogram {
  double min = 0, max = 0, count = 0, sum = 0, sum_squares = 0;
  std::vector<double> limits;  // upper ends, ascending
  std::vector<double> counts;  // one for each limit

  static constexpr int kBuckets = 30;
  static Histogram of(std::span<const float> values);
  bool operator==(const Histogram&) const = default;
};

/// A picture in colours.
struct SummaryImage {
  std::int64_t height = 0, width = 0;
  std::string png;  // the bytes of a PNG file
  bool operator==(const SummaryImage&) const = default;
};

/// A named number, histogram or picture.
struct SummaryValue {
  std::string tag;
  std::variant<float, Histogram, SummaryImage> value;
  bool operator==(const SummaryValue&) const = default;
};

/// A TensorBoard event (docs/summaries.md). It has exactly one of version, start, graph and values.
struct SummaryEvent {
  double wall_time = 0;      // seconds since 1970
  std::int64_t step = 0;     // the global step
  std::string version = {};  // of the file; only in its first event
  // A run began with this step: earlier events of this and later steps no longer count.
  bool start = false;
  std::string graph = {};  // a GraphDef
  std::vector<SummaryValue> values = {};
  bool operator==(const SummaryEvent&) const = default;

  std::string encode() const;
  /// Reads an event. Leaves out kinds of values that we do not write. Throws kDataLoss.
  static SummaryEvent decode(std::string_view message);
};

}  // namespace paceline
