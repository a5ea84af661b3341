// Pictures that gnuplot draws.
#pragma once

#include <functional>
#include <string>

namespace paceline {

/// Makes the script that draws on a terminal ("svg", "pngcairo") into the file `picture`.
using GnuplotScript =
    std::function<std::string(const std::string& terminal, const std::string& picture)>;

/// Returns gnuplot's terminal for a picture FILE.svg or FILE.png. Throws kUsage, naming `flag`, for
/// other files.
std::string terminal_for(const std::string& flag, const std::string& out);

/// Returns the whole picture. Throws kNotFound if gnuplot is not installed, and kUnavailable if it
/// could not draw `out`.
std::string drawn_by_gnuplot(const std::string& out, const GnuplotScript& script);

}  // namespace paceline
