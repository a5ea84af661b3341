// Messages of commands about the data that they have read.
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "base/plain_text.h"

namespace paceline {

/// Prints lines in which words of a file or a peer may stand.
inline void say(std::string_view text) { fmt::print("{}", plain_lines(text)); }

}  // namespace paceline
