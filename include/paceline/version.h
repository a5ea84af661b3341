// The version of the library and the facts about the machine that a bug report needs.
#pragma once

#include <string>

namespace paceline {

/// Lines "name: value" with version, commit, compiler, oneDNN, processor and its instruction sets,
/// devices and links.
std::string version_text();
/// The version and the commit that the library was built from: "0.1.0 ecfe3c1".
std::string version_and_commit();
/// The name of the processor, such as "AMD EPYC". Empty where the machine does not tell the name.
std::string processor_name();

}  // namespace paceline
