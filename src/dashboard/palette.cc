#include "dashboard/palette.h"

#include <iterator>

#include "base/check.h"
#include "dashboard/page.h"

namespace paceline {

std::string colour_of(std::string_view name) {
  constexpr std::size_t kDigits = 7;  // "#009e73"
  const std::string variable = "--" + std::string(name) + ": ";
  const std::size_t at = kPage.find(variable + "#");
  PACELINE_CHECK(at != kPage.npos);
  return std::string(kPage.substr(at + variable.size(), kDigits));
}

std::string colour_of_curve(std::size_t index) {
  constexpr std::string_view kCurves[] = {"push", "input", "compute", "queue",
                                          "wait", "pull",  "other"};
  return colour_of(kCurves[index % std::size(kCurves)]);
}

}  // namespace paceline
