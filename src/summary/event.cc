#include "summary/event.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "summary/proto_reader.h"
#include "summary/proto_writer.h"

namespace paceline {
namespace {

void add_moments(Histogram& histogram, std::span<const float> values) {
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    const bool first = histogram.count++ == 0;
    histogram.min = first ? value : std::min<double>(histogram.min, value);
    histogram.max = first ? value : std::max<double>(histogram.max, value);
    histogram.sum += value;
    histogram.sum_squares += double(value) * value;
  }
}

}  // namespace

Histogram Histogram::of(std::span<const float> values) {
  Histogram histogram;
  add_moments(histogram, values);
  if (histogram.count == 0) return histogram;
  if (histogram.min == histogram.max) {
    histogram.limits = {histogram.max};
    histogram.counts = {histogram.count};
    return histogram;
  }
  const double width = (histogram.max - histogram.min) / kBuckets;
  for (int i = 1; i < kBuckets; ++i) histogram.limits.push_back(histogram.min + i * width);
  histogram.limits.push_back(histogram.max);
  histogram.counts.resize(kBuckets);
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    const int bucket = int((value - histogram.min) / width);
    ++histogram.counts[std::size_t(std::min(bucket, kBuckets - 1))];
  }
  return histogram;
}

namespace {

// The numbers of the fields in TensorFlow's public messages Event, SessionLog, Summary, Image and
// HistogramProto.
enum EventField : int { kWallTime = 1, kStep, kVersion, kGraph, kSummary, kSessionLog = 7 };
enum SessionLogField : int { kStatus = 1 };
enum SummaryField : int { kValue = 1 };
enum ValueField : int { kTag = 1, kNumber, kImage = 4, kHistogram };
enum ImageField : int { kHeight = 1, kWidth, kColours, kFile };
enum HistogramField : int { kMin = 1, kMax, kCount, kSum, kSumSquares, kLimits, kCounts };

constexpr int kRgb = 3;      // of Image.colorspace
constexpr int kStarted = 1;  // of the enumeration SessionLog.SessionStatus

std::string encode_histogram(const Histogram& histogram) {
  ProtoWriter writer;
  writer.float64(kMin, histogram.min);
  writer.float64(kMax, histogram.max);
  writer.float64(kCount, histogram.count);
  writer.float64(kSum, histogram.sum);
  writer.float64(kSumSquares, histogram.sum_squares);
  writer.packed(kLimits, histogram.limits);
  writer.packed(kCounts, histogram.counts);
  return writer.message();
}

std::string encode_image(const SummaryImage& image) {
  ProtoWriter writer;
  writer.integer(kHeight, image.height);
  writer.integer(kWidth, image.width);
  writer.integer(kColours, kRgb);
  writer.bytes(kFile, image.png);
  return writer.message();
}

std::string encode_value(const SummaryValue& value) {
  ProtoWriter writer;
  writer.bytes(kTag, value.tag);
  if (const float* number = std::get_if<float>(&value.value)) {
    writer.float32(kNumber, *number);
  } else if (const Histogram* histogram = std::get_if<Histogram>(&value.value)) {
    writer.bytes(kHistogram, encode_histogram(*histogram));
  } else {
    writer.bytes(kImage, encode_image(std::get<SummaryImage>(value.value)));
  }
  return writer.message();
}

Histogram decode_histogram(std::string_view message) {
  Histogram histogram;
  for (ProtoReader reader(message); reader.next();) {
    switch (reader.field()) {
      case kMin:
        histogram.min = reader.float64();
        break;
      case kMax:
        histogram.max = reader.float64();
        break;
      case kCount:
        histogram.count = reader.float64();
        break;
      case kSum:
        histogram.sum = reader.float64();
        break;
      case kSumSquares:
        histogram.sum_squares = reader.float64();
        break;
      case kLimits:
        reader.append_to(histogram.limits);
        break;
      case kCounts:
        reader.append_to(histogram.counts);
        break;
    }
  }
  return histogram;
}

SummaryImage decode_image_field(std::string_view message) {
  SummaryImage image;
  for (ProtoReader reader(message); reader.next();) {
    if (reader.field() == kHeight) image.height = reader.integer();
    if (reader.field() == kWidth) image.width = reader.integer();
    if (reader.field() == kFile) image.png = reader.bytes();
  }
  return image;
}

// Returns nothing for a kind of value that we do not write, such as a sound or a tensor.
std::optional<SummaryValue> decode_value(std::string_view message) {
  SummaryValue value;
  bool known = false;
  for (ProtoReader reader(message); reader.next();) {
    if (reader.field() == kTag) value.tag = reader.bytes();
    if (reader.field() == kNumber) value.value = reader.float32();
    if (reader.field() == kHistogram) value.value = decode_histogram(reader.bytes());
    if (reader.field() == kImage) value.value = decode_image_field(reader.bytes());
    known = known || reader.field() == kNumber || reader.field() == kHistogram ||
            reader.field() == kImage;
  }
  return known ? std::optional(std::move(value)) : std::nullopt;
}

void decode_summary(std::string_view message, std::vector<SummaryValue>& values) {
  for (ProtoReader reader(message); reader.next();) {
    if (reader.field() != kValue) continue;
    if (auto value = decode_value(reader.bytes())) values.push_back(std::move(*value));
  }
}

bool says_started(std::string_view message) {
  bool started = false;
  for (ProtoReader reader(message); reader.next();) {
    if (reader.field() == kStatus) started = reader.integer() == kStarted;
  }
  return started;
}

}  // namespace

std::string SummaryEvent::encode() const {
  ProtoWriter writer;
  writer.float64(kWallTime, wall_time);
  writer.integer(kStep, step);
  if (!version.empty()) writer.bytes(kVersion, version);
  if (!graph.empty()) writer.bytes(kGraph, graph);
  if (!values.empty()) {
    ProtoWriter summary;
    for (const SummaryValue& value : values) summary.bytes(kValue, encode_value(value));
    writer.bytes(kSummary, summary.message());
  }
  if (start) {
    ProtoWriter log;
    log.integer(kStatus, kStarted);
    writer.bytes(kSessionLog, log.message());
  }
  return writer.message();
}

SummaryEvent SummaryEvent::decode(std::string_view message) {
  SummaryEvent event;
  for (ProtoReader reader(message); reader.next();) {
    switch (reader.field()) {
      case kWallTime:
        event.wall_time = reader.float64();
        break;
      case kStep:
        event.step = reader.integer();
        break;
      case kVersion:
        event.version = reader.bytes();
        break;
      case kGraph:
        event.graph = reader.bytes();
        break;
      case kSummary:
        decode_summary(reader.bytes(), event.values);
        break;
      case kSessionLog:
        event.start = says_started(reader.bytes());
        break;
    }
  }
  return event;
}

}  // namespace paceline
