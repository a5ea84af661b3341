// Writes and reads the records of a report as JSON, by the lists of their fields.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "run/report/json_place.h"
#include "run/report/report.h"
#include "run/report/task_progress.h"

namespace paceline {

/// The digits of numbers: all that are needed to read the same number back, or six, more than a
/// picture shows.
enum class Digits : std::uint8_t { kAll, kSix };

/// What Report::to_json writes. The members are ordered, so that the file reads as its
/// documentation does.
nlohmann::ordered_json to_json_value(const Report& report);
/// The members that LiveTask adds to those of a task.
nlohmann::ordered_json to_json_value(const LiveTask& task, Digits digits);
/// Returns null for a number that was not measured or is not finite.
nlohmann::ordered_json six_digits(std::optional<double> number);
/// Throws kDataLoss. What earlier versions did not write may be missing.
Report report_from_json(const JsonPlace& object);

}  // namespace paceline
