#include "evidence/row_progress.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>

namespace paceline::bench {
namespace {

std::string about(double seconds) {
  constexpr double kMinute = 60;
  return seconds < kMinute ? fmt::format("about {:.0f} s", std::ceil(seconds))
                           : fmt::format("about {:.0f} min", std::ceil(seconds / kMinute));
}

}  // namespace

std::string plan_text(const std::vector<double>& seconds) {
  return fmt::format("{} row{}, {}", seconds.size(), seconds.size() == 1 ? "" : "s",
                     about(std::accumulate(seconds.begin(), seconds.end(), 0.0)));
}

std::string RowProgress::text(std::size_t row, std::chrono::duration<double> elapsed) const {
  const auto here = seconds_.begin() + std::ptrdiff_t(row);
  const double before = std::accumulate(seconds_.begin(), here, 0.0);
  const double later = std::accumulate(here, seconds_.end(), 0.0);
  const double pace = before > 0 ? elapsed.count() / before : 1;
  return fmt::format("row {} of {}, {} left", row + 1, seconds_.size(), about(later * pace));
}

}  // namespace paceline::bench
