// One program a target: PACELINE_FUZZ_TARGET is its function's name.
#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  paceline::testing::PACELINE_FUZZ_TARGET({data, size});
  return 0;
}
