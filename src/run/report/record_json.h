// Writes the records of a report as JSON and reads them, by the lists of their fields.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "run/report/json_place.h"
#include "run/report/report.h"
#include "run/report/task_progress.h"

namespace paceline {

/// How many digits a number gets: all that are needed to read the same number back, or six, which
/// are more than a picture shows.
enum class Digits : std::uint8_t { kAll, kSix };

/// Returns what Report::to_json writes. The members are in the order in which the documentation
/// describes them.
nlohmann::ordered_json to_json_value(const Report& report);
/// Returns the members that LiveTask adds to those of a task.
nlohmann::ordered_json to_json_value(const LiveTask& task, Digits digits);
/// Returns the number with six digits; null if it was not measured or is not finite.
nlohmann::ordered_json six_digits(std::optional<double> number);
/// Throws kDataLoss. Members that earlier versions did not write may be missing.
Report report_from_json(const JsonPlace& object);

}  // namespace paceline
