// The programs of examples/, built against an installed prefix.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "tests/process.h"

namespace paceline::testing {

constexpr std::chrono::seconds kBuildTime(200), kRunTime(60);

/// True if this build has a sanitizer, whose flags the examples' own builds lack.
bool sanitized();
/// Runs a program to its end, and expects it to end in time with status 0. Returns its output.
std::string output_of(const std::vector<std::string>& words, std::chrono::seconds within);
/// Builds examples/NAME against an installed prefix. Returns the path of the program.
std::string built_example(const std::string& name, const TemporaryFolder& folder);

}  // namespace paceline::testing
