// The live page, which needs nothing from elsewhere: src/dashboard/page.html.
#pragma once

#include <string_view>

namespace paceline {

extern const std::string_view kPage;

}  // namespace paceline
