// A live run as text, for a terminal: what the page shows, without its history.
#pragma once

#include <string>

namespace paceline {

/// `state` has the form of state.json. No line has more than `columns` characters. Shares are drawn
/// as bars, in a terminal's colours if `colours`. Throws kDataLoss if `state` is not of that form.
std::string terminal_view(const std::string& state, int columns, bool colours);

}  // namespace paceline
