// Reads messages in protobuf's wire format. The bytes may come from anywhere.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace paceline {

/// Reads the fields of one message, one after the other; the caller may skip fields. The bytes must
/// stay valid. All functions throw kDataLoss if the bytes are no such message or field.
class ProtoReader {
 public:
  explicit ProtoReader(std::string_view message) : rest_(message) {}

  /// Goes to the next field; returns false at the end.
  bool next();
  int field() const { return field_; }
  std::int64_t integer() const;
  double float64() const;
  float float32() const;
  std::string_view bytes() const;
  /// Appends the values of a repeated double: all of them if the field is packed, else one.
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
  std::string_view bytes_;  // the value of any other type
};

}  // namespace paceline
