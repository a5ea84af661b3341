// How readers of this room say what is wrong with a file.
#pragma once

#include <string>

namespace paceline {

/// Throws kDataLoss "WHAT: WHY"; WHAT begins with the file's path.
[[noreturn]] void data_loss(const std::string& what, const std::string& why);

}  // namespace paceline
