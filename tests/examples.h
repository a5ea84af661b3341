// The programs of examples/, built against an installed prefix.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "tests/process.h"

namespace paceline::testing {

constexpr std::chrono::seconds kBuildTime(200), kRunTime(60);

/// True when this build has a sanitizer, whose flags a program of its own does not have.
bool sanitized();
/// Runs a program to its end, which is expected to come in time and with status 0. Returns what it
/// has written.
std::string output_of(const std::vector<std::string>& words, std::chrono::seconds within);
/// Builds examples/NAME against an installed prefix. Returns the path of the program.
std::string built_example(const std::string& name, const TemporaryFolder& folder);

}  // namespace paceline::testing
