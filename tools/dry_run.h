// What a job would be, from its flags and its graph alone: `paceline train MODEL … --dry-run`.
#pragma once

#include <string>

#include "models/model.h"

namespace paceline {

/// The cluster; parameters; which ps keeps what; FLOPs and bytes of a step, and its bytes on links.
/// Starts nothing and connects to nobody. Throws kUsage.
std::string dry_run_text(const models::Model& model, const models::ModelOptions& options,
                         const Cluster& cluster);

}  // namespace paceline
