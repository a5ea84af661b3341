#include "tests/fuzz/server_script.h"

namespace paceline::testing {

void fuzz_server(Bytes bytes) { play_server_script(bytes); }

}  // namespace paceline::testing
