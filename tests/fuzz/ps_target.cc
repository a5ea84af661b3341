#include "tests/fuzz/ps_script.h"

namespace paceline::testing {

void fuzz_ps(Bytes bytes) { play_ps_script(bytes); }

}  // namespace paceline::testing
