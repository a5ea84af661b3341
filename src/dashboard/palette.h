// The colours of pictures: those of the live page, which are written in page/page.css alone.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

/// "#009e73" for "compute": the colour of an activity, or "accent", on a light page. The name must
/// be one that the page has.
std::string colour_of(std::string_view name);
/// The colour of curve number `index` of a picture, which can be told apart with any colour vision.
std::string colour_of_curve(std::size_t index);

}  // namespace paceline
