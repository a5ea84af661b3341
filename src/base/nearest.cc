#include "base/nearest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace paceline {
namespace {

char lower(char c) { return char(std::tolower(static_cast<unsigned char>(c))); }

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the table are enough: a swap looks two rows back.
  std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before.swap(above);
    above.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const char x = lower(a[i - 1]), y = lower(b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (x == y ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && x == lower(b[j - 2]) && lower(a[i - 2]) == y;
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::string nearest(std::string_view word, const std::vector<std::string_view>& candidates) {
  std::string_view best;
  std::size_t smallest = std::string_view::npos;
  for (std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < smallest) {
      smallest = distance;
      best = candidate;
    }
  }
  return std::string(best);
}

std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& candidates) {
  const std::string best = nearest(word, candidates);
  // A word of which more than a third of the letters differ is another word, not a slip of the
  // hand. The dashes of flags are no letters.
  const std::size_t letters = best.size() - std::min(best.find_first_not_of('-'), best.size());
  const bool resembles = letters > 0 && edit_distance(word, best) * 3 <= letters + 1;
  return resembles ? fmt::format("; did you mean '{}'?", best) : "";
}

}  // namespace paceline
