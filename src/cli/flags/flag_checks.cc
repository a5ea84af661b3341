#include "cli/flags/flag_checks.h"

#include <fmt/format.h>

namespace paceline {

void check_together(const FlagValues& values, const std::string& flag, const std::string& other,
                    const std::string& why) {
  if (values.given(flag) && !values.given(other)) {
    refuse_flags(fmt::format("{} needs {}: {}", flag, other, why));
  }
}

void check_apart(const FlagValues& values, const std::string& flag, const std::string& other,
                 const std::string& why) {
  if (values.given(flag) && values.given(other)) {
    refuse_flags(fmt::format("{} and {} cannot both be given: {}", flag, other, why));
  }
}

}  // namespace paceline
