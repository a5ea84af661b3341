// The cluster as Kubeflow's training operator, and TensorFlow, tell it to a task: in TF_CONFIG.
#pragma once

#include <string_view>
#include <vector>

#include "cli/flags/command_line.h"

namespace paceline {

/// The flags that say the same: --cluster and --task, or none where the cluster is one task alone
/// (no ps and one worker). `chief` or `master` becomes worker:0, and the others shift by one. An
/// `evaluator` is no part of the cluster, only a task. Throws kUsage that begins with "TF_CONFIG",
/// line and column.
std::vector<GivenFlag> flags_of_tf_config(std::string_view text);

}  // namespace paceline
