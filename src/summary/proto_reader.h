// Reads messages of protobuf's wire format, from any source.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace paceline {

/// The fields of one message, one after the other; those that nobody asks for are passed over.
/// Borrows the bytes. All throw kDataLoss when the bytes are no such message or field.
class ProtoReader {
 public:
  explicit ProtoReader(std::string_view message) : rest_(message) {}

  /// Goes to the next field; false at the end.
  bool next();
  int field() const { return field_; }
  std::int64_t integer() const;
  double float64() const;
  float float32() const;
  std::string_view bytes() const;
  /// Appends a repeated double's values: packed, or one of them.
  void append_to(std::vector<double>& values) const;

 private:
  std::uint64_t varint();
  std::string_view take(std::uint64_t size);
  void expect(int wire_type) const;
  template <typename T>
  T fixed() const;

  std::string_view rest_;
  int field_ = 0, wire_type_ = 0;
  std::uint64_t integer_ = 0;
  std::string_view bytes_;  // of every other type
};

}  // namespace paceline
