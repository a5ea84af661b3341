#include "run/usage_errors.h"

#include <fmt/format.h>

namespace paceline {

void refuse_flag(const std::string& flag, const std::string& value, const std::string& why) {
  throw Error(ErrorCode::kUsage, fmt::format("{} {}: {}", flag, value.empty() ? "''" : value, why));
}

void refuse_flags(const std::string& message) { throw Error(ErrorCode::kUsage, message); }

}  // namespace paceline
