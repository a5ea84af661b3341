#include "base/grouped_digits.h"

namespace paceline {

std::string grouped_digits(std::int64_t number) {
  std::string digits = std::to_string(number);
  const std::ptrdiff_t first = number < 0 ? 1 : 0;
  for (std::ptrdiff_t at = std::ptrdiff_t(digits.size()) - 3; at > first; at -= 3) {
    digits.insert(std::size_t(at), 1, ',');
  }
  return digits;
}

}  // namespace paceline
