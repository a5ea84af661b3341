// CHECK: for our own bugs only, never for bad input.
#pragma once

#include <string_view>

namespace paceline::detail {
[[noreturn]] void check_failed(const char* file, int line, std::string_view condition);
}

#define PACELINE_CHECK(condition)                                                       \
  do {                                                                                  \
    if (!(condition)) ::paceline::detail::check_failed(__FILE__, __LINE__, #condition); \
  } while (false)
