#include "cli/flags/tf_config.h"
#include "paceline/cluster.h"
#include "paceline/error.h"
#include "tests/fuzz/targets.h"

namespace paceline::testing {

void fuzz_tf_config(Bytes bytes) {
  try {
    for (const GivenFlag& flag :
         flags_of_tf_config({reinterpret_cast<const char*>(bytes.data()), bytes.size()})) {
      if (flag.name == "--cluster") ClusterSpec::parse(flag.values.at(0));
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUsage) throw;
  }
}

}  // namespace paceline::testing
