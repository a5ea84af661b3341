// The function that libFuzzer calls. PACELINE_FUZZ_TARGET is the function of the
// program's target.
#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  paceline::testing::PACELINE_FUZZ_TARGET({data, size});
  return 0;
}
