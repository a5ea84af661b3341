// The errors with which the readers of checkpoint/ report a damaged file.
#pragma once

#include <string>

namespace paceline {

/// Throws kDataLoss "WHAT: WHY"; WHAT begins with the file's path.
[[noreturn]] void data_loss(const std::string& what, const std::string& why);

}  // namespace paceline
