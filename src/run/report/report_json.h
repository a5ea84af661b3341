// A report as a value, for what puts it into another one.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "run/report/report.h"

namespace paceline {

/// What Report::to_json writes.
nlohmann::ordered_json report_to_value(const Report& report);

}  // namespace paceline
