// The numbers of a pipeline in a report.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "cluster/report/json_place.h"
#include "paceline/data.h"

namespace paceline {

nlohmann::ordered_json input_to_json(const InputReport& input);
/// Throws kDataLoss.
InputReport input_from_json(const JsonPlace& object);

}  // namespace paceline
