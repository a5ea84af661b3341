// The layout of a protobuf field: https://protobuf.dev/programming-guides/encoding. Numbers are
// little-endian, as on every machine that Paceline runs on.
#pragma once

#include <bit>

namespace paceline {

static_assert(std::endian::native == std::endian::little);

enum ProtoWireType : int {
  kProtoVarint = 0,
  kProtoFixed64 = 1,
  kProtoBytes = 2,
  kProtoFixed32 = 5,
};

}  // namespace paceline
