// A live run as text, for a terminal: what the page shows, without its history.
#pragma once

#include <string>

namespace paceline {

/// `state`: as state.json has it. No line has more than `columns` characters; shares are drawn as
/// bars, in colours of a terminal if `colours`. Throws kDataLoss when the state is none.
std::string terminal_view(const std::string& state, int columns, bool colours);

}  // namespace paceline
