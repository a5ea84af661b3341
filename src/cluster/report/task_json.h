// One entry of "tasks" in a report.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "cluster/report/report.h"

namespace paceline {

/// The members are ordered, so that the file reads as its documentation does.
nlohmann::ordered_json task_to_json(const TaskReport& task);
TaskReport task_from_json(const nlohmann::ordered_json& object);

}  // namespace paceline
