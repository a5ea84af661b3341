#include "summary/proto_writer.h"

#include <cstring>

#include "summary/proto_wire.h"

namespace paceline {

void ProtoWriter::tag(int field, int wire_type) { varint(std::uint64_t(field) << 3 | wire_type); }

void ProtoWriter::varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) message_.push_back(char(value | 0x80));
  message_.push_back(char(value));
}

template <typename T>
void ProtoWriter::fixed(T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  message_.append(bytes, sizeof(T));
}

void ProtoWriter::integer(int field, std::int64_t value) {
  tag(field, kProtoVarint);
  varint(std::uint64_t(value));
}

void ProtoWriter::float64(int field, double value) {
  tag(field, kProtoFixed64);
  fixed(value);
}

void ProtoWriter::float32(int field, float value) {
  tag(field, kProtoFixed32);
  fixed(value);
}

void ProtoWriter::bytes(int field, std::string_view value) {
  begin_bytes(field, value.size());
  message_.append(value);
}

void ProtoWriter::begin_bytes(int field, std::uint64_t size) {
  tag(field, kProtoBytes);
  varint(size);
}

void ProtoWriter::packed(int field, std::span<const double> values) {
  bytes(field, {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
}

}  // namespace paceline
