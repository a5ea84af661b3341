// The numbers of a pipeline in a report.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "paceline/data.h"

namespace paceline {

nlohmann::ordered_json input_to_json(const InputReport& input);
InputReport input_from_json(const nlohmann::ordered_json& object);

}  // namespace paceline
