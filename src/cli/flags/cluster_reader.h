// Reads the cluster of a job from its flags.
#pragma once

#include <optional>
#include <string>

#include "cli/flags/command_line.h"
#include "paceline/cluster.h"

namespace paceline {

/// Returns the job that the flags describe, with all defaults. Throws kUsage that names the flag
/// and the allowed values.
Cluster read_cluster(const FlagValues& values);
/// Reads "cpu", "cpu:0", "cuda", "cuda:N", "sim" or "sim:N"; returns nothing for other texts.
std::optional<DeviceChoice> device_named(const std::string& text);
/// Returns a sentence with the new name of a strategy that the flags call by its old name; empty if
/// they do not.
std::string old_name_hint(const FlagValues& values, const Cluster& cluster);

}  // namespace paceline
