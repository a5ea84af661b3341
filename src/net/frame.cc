#include "net/frame.h"

#include <bit>
#include <concepts>
#include <cstring>
#include <string>

#include "paceline/error.h"

namespace paceline {
namespace {

// The fields are copied as they lie in memory, and on the wire they are little-endian.
static_assert(std::endian::native == std::endian::little);

class Cursor {
 public:
  explicit Cursor(std::byte* at) : at_(at) {}
  void put(std::unsigned_integral auto value) {
    std::memcpy(at_, &value, sizeof value);
    at_ += sizeof value;
  }

 private:
  std::byte* at_;
};

class ConstCursor {
 public:
  explicit ConstCursor(const std::byte* at) : at_(at) {}
  template <std::unsigned_integral T>
  T take() {
    T value;
    std::memcpy(&value, at_, sizeof value);
    at_ += sizeof value;
    return value;
  }

 private:
  const std::byte* at_;
};

std::string printable(std::span<const std::byte> bytes) {
  std::string text;
  for (std::byte b : bytes) text += char(b) >= ' ' && char(b) <= '~' ? char(b) : '.';
  return text;
}

}  // namespace

void encode(const FrameHeader& header, std::span<std::byte, kFrameHeaderBytes> bytes,
            std::uint32_t magic) {
  Cursor out(bytes.data());
  out.put(magic);
  out.put(header.payload_bytes);
  out.put(header.type);
  out.put(header.flags);
  out.put(header.id);
  out.put(header.offset);
  out.put(header.step);
}

std::array<std::byte, kFrameHeaderBytes> encode(const FrameHeader& header) {
  std::array<std::byte, kFrameHeaderBytes> bytes;
  encode(header, bytes);
  return bytes;
}

FrameHeader decode(std::span<const std::byte, kFrameHeaderBytes> bytes,
                   std::uint32_t most_payload_bytes, std::uint32_t magic) {
  ConstCursor in(bytes.data());
  if (in.take<std::uint32_t>() != magic)
    throw Error(ErrorCode::kDataLoss,
                "garbage where a frame should begin: '" + printable(bytes.first(16)) + "'");
  FrameHeader header;
  header.payload_bytes = in.take<std::uint32_t>();
  header.type = in.take<std::uint16_t>();
  header.flags = in.take<std::uint16_t>();
  header.id = in.take<std::uint32_t>();
  header.offset = in.take<std::uint64_t>();
  header.step = in.take<std::uint64_t>();
  if (header.payload_bytes > most_payload_bytes)
    throw Error(ErrorCode::kDataLoss, "a frame claims " + std::to_string(header.payload_bytes) +
                                          " bytes, and at most " +
                                          std::to_string(most_payload_bytes) + " are allowed");
  return header;
}

}  // namespace paceline
