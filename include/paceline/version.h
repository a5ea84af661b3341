// What a bug report needs.
#pragma once

#include <string>

namespace paceline {

/// Lines "name: value": version, commit, compiler, oneDNN, CPU and its instruction sets, devices,
/// links.
std::string version_text();

}  // namespace paceline
