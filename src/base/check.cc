#include "base/check.h"

#include <fmt/format.h>

#include "paceline/error.h"

namespace paceline::detail {

void check_failed(const char* file, int line, std::string_view condition) {
  throw Error(
      ErrorCode::kInternal,
      fmt::format("{}:{}: CHECK({}) failed: this is a bug in Paceline", file, line, condition));
}

}  // namespace paceline::detail
