#include "summary/proto_reader.h"

#include <fmt/format.h>

#include <cstring>

#include "paceline/error.h"
#include "summary/proto_wire.h"

namespace paceline {
namespace {

constexpr int kMostVarintBits = 64;

[[noreturn]] void refuse_message(const std::string& why) {
  throw Error(ErrorCode::kDataLoss, "no protobuf message: " + why);
}

}  // namespace

bool ProtoReader::next() {
  if (rest_.empty()) return false;
  const std::uint64_t tag = varint();
  field_ = int(tag >> 3 & 0x1fffffff);
  wire_type_ = int(tag & 7);
  switch (wire_type_) {
    case kProtoVarint:
      integer_ = varint();
      return true;
    case kProtoFixed64:
      bytes_ = take(sizeof(std::uint64_t));
      return true;
    case kProtoFixed32:
      bytes_ = take(sizeof(std::uint32_t));
      return true;
    case kProtoBytes:
      bytes_ = take(varint());
      return true;
    default:
      refuse_message(fmt::format("field {} has the unknown type {}", field_, wire_type_));
  }
}

std::uint64_t ProtoReader::varint() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < kMostVarintBits; shift += 7) {
    const auto byte = std::uint8_t(take(1)[0]);
    value |= std::uint64_t(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  refuse_message("a number has no end");
}

std::string_view ProtoReader::take(std::uint64_t size) {
  if (size > rest_.size()) {
    refuse_message(fmt::format("{} bytes are to follow, {} do", size, rest_.size()));
  }
  const std::string_view taken = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return taken;
}

void ProtoReader::expect(int wire_type) const {
  if (wire_type_ == wire_type) return;
  refuse_message(fmt::format("field {} has type {}, not {}", field_, wire_type_, wire_type));
}

template <typename T>
T ProtoReader::fixed() const {
  T value;
  std::memcpy(&value, bytes_.data(), sizeof(T));
  return value;
}

std::int64_t ProtoReader::integer() const {
  expect(kProtoVarint);
  return std::int64_t(integer_);
}

double ProtoReader::float64() const {
  expect(kProtoFixed64);
  return fixed<double>();
}

float ProtoReader::float32() const {
  expect(kProtoFixed32);
  return fixed<float>();
}

std::string_view ProtoReader::bytes() const {
  expect(kProtoBytes);
  return bytes_;
}

void ProtoReader::append_to(std::vector<double>& values) const {
  if (wire_type_ == kProtoFixed64) return values.push_back(fixed<double>());
  const std::string_view packed = bytes();
  if (packed.size() % sizeof(double) != 0) {
    refuse_message(fmt::format("field {} has {} bytes of doubles", field_, packed.size()));
  }
  const std::size_t before = values.size();
  values.resize(before + packed.size() / sizeof(double));
  if (!packed.empty()) std::memcpy(values.data() + before, packed.data(), packed.size());
}

}  // namespace paceline
