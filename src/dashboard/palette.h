// The colours of pictures. They are the colours of the live page, and only page/page.css defines
// them.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

/// Returns the colour of an activity on a light page ("#009e73" for "compute"), or that of
/// "accent". The page must have a colour of this name.
std::string colour_of(std::string_view name);
/// Returns the colour of curve number `index` in a picture. The colours can be told apart with any
/// colour vision.
std::string colour_of_curve(std::size_t index);

}  // namespace paceline
