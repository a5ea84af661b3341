// Whole numbers for people: 1,234,567.
#pragma once

#include <cstdint>
#include <string>

namespace paceline {

std::string grouped_digits(std::int64_t number);

}  // namespace paceline
