// The numbers of a pipeline in a report.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "paceline/data.h"
#include "run/report/json_place.h"

namespace paceline {

nlohmann::ordered_json input_to_json(const InputReport& input);
/// Throws kDataLoss.
InputReport input_from_json(const JsonPlace& object);

}  // namespace paceline
