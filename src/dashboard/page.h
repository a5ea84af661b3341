// The live page, whose files are in src/dashboard/page/. It loads nothing from elsewhere.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

/// The page's files joined into one text, with marks that whole_page() replaces by lists.
extern const std::string_view kPage;
std::string whole_page();

}  // namespace paceline
