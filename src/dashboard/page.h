// The live page, which needs nothing from elsewhere: src/dashboard/page/.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

/// Its files as one, with marks where whole_page() puts lists in.
extern const std::string_view kPage;
std::string whole_page();

}  // namespace paceline
