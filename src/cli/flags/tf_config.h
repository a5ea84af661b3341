// Reads the cluster that TensorFlow, or Kubeflow's training operator, describes to a task in
// TF_CONFIG.
#pragma once

#include <string_view>
#include <vector>

#include "cli/flags/command_line.h"

namespace paceline {

/// Returns the flags that say the same: --cluster and --task; none if the cluster is a single task
/// (no ps and one worker). `chief` or `master` becomes worker:0, and the numbers of the other
/// workers grow by one. An `evaluator` is only a task, and no part of the cluster. Throws kUsage
/// that begins with "TF_CONFIG", line and column.
std::vector<GivenFlag> flags_of_tf_config(std::string_view text);

}  // namespace paceline
