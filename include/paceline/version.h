// What a bug report needs.
#pragma once

#include <string>

namespace paceline {

/// Lines "name: value": version, commit, compiler, oneDNN, CPU and its instruction sets, devices,
/// links.
std::string version_text();
/// "0.1.0 ecfe3c1": the version and the commit that it was built from.
std::string version_and_commit();
/// "AMD EPYC"; empty where the machine does not say.
std::string processor_name();

}  // namespace paceline
