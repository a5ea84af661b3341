// Messages of commands that may quote data from files or peers.
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "base/plain_text.h"

namespace paceline {

/// Prints lines that may contain words of a file or a peer.
inline void say(std::string_view text) { fmt::print("{}", plain_lines(text)); }

}  // namespace paceline
