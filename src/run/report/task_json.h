// One entry of "tasks" in a report.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "run/report/json_place.h"
#include "run/report/report.h"

namespace paceline {

/// The members are ordered, so that the file reads as its documentation does.
nlohmann::ordered_json task_to_json(const TaskReport& task);
/// Throws kDataLoss.
TaskReport task_from_json(const JsonPlace& object);

}  // namespace paceline
