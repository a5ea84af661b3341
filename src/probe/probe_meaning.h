// Says in words what a measured network means for a job.
#pragma once

#include <span>
#include <string>

#include "predict/hosts_file.h"
#include "predict/prediction.h"

namespace paceline {

/// Returns lines about a model whose values take `value_bytes` on these hosts: how many bytes its
/// steps send, how long that takes between the two hosts with the slowest way, and what the
/// predictions, the fastest first, say of the ways to distribute. There is at least one prediction.
std::string meaning_text(const std::string& model, double value_bytes, const DescribedHosts& hosts,
                         std::span<const Prediction> predictions);

}  // namespace paceline
