#include "paceline/data.h"
#include "paceline/error.h"
#include "tests/fuzz/targets.h"

namespace paceline::testing {
namespace {

void decode(const ImageDecoding& decoding, Bytes bytes) {
  Example example;
  example.bytes = bytes;
  try {
    decode_image(decoding, example);
    if (std::int64_t(example.bytes.size()) != example.size.values()) __builtin_trap();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kDataLoss) throw;
  }
}

}  // namespace

void fuzz_image(Bytes bytes) {
  decode({.height = 7, .width = 9, .random = true}, bytes);
  decode({.height = 16, .width = 16}, bytes);
  decode({}, bytes);
}

}  // namespace paceline::testing
