// Pictures that gnuplot draws.
#pragma once

#include <functional>
#include <string>

namespace paceline {

/// Makes the script for a terminal ("svg", "pngcairo") and the file that the picture goes to.
using GnuplotScript =
    std::function<std::string(const std::string& terminal, const std::string& picture)>;

/// The terminal for a picture FILE.svg or FILE.png. Throws kUsage, naming `flag`, for others.
std::string terminal_for(const std::string& flag, const std::string& out);

/// Returns the picture, whole. Throws kNotFound when gnuplot is not installed, kUnavailable when it
/// could not draw `out`.
std::string drawn_by_gnuplot(const std::string& out, const GnuplotScript& script);

}  // namespace paceline
