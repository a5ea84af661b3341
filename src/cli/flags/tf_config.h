// Reads the cluster that TensorFlow, or Kubeflow's training operator, describes to a task in
// TF_CONFIG.
#pragma once

#include <string_view>
#include <vector>

#include "cli/flags/command_line.h"

namespace paceline {

/// Returns the flags that say the same: --cluster and --task; for a single task (no ps and at most
/// one worker), only the internal flag --one-task. `chief` or `master` becomes worker:0, and the
/// numbers of the other workers grow by one. An `evaluator` takes no part in training, and its own
/// flags are --task alone. Throws kUsage that begins with "TF_CONFIG", line and column.
std::vector<GivenFlag> flags_of_tf_config(std::string_view text);

}  // namespace paceline
