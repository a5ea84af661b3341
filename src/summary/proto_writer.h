// Writes messages of protobuf's wire format.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace paceline {

/// Writes one message, with its fields in the order of the calls. A message inside it is written
/// separately, and then added by bytes().
class ProtoWriter {
 public:
  void integer(int field, std::int64_t value);
  void float64(int field, double value);
  void float32(int field, float value);
  /// Writes a string, bytes, or a message.
  void bytes(int field, std::string_view value);
  /// Writes the beginning of a field of `size` bytes; the caller then writes these bytes elsewhere.
  void begin_bytes(int field, std::uint64_t size);
  /// Writes a repeated double, packed.
  void packed(int field, std::span<const double> values);

  const std::string& message() const { return message_; }

 private:
  void tag(int field, int wire_type);
  void varint(std::uint64_t value);
  template <typename T>
  void fixed(T value);

  std::string message_;
};

}  // namespace paceline
