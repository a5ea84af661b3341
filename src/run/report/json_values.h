// How the numbers of a report are written: null is one that was not measured.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace paceline {

nlohmann::ordered_json to_value(const std::optional<double>& number);
/// An object of these numbers by their names, in their order.
nlohmann::ordered_json to_object(const std::vector<std::pair<std::string, double>>& numbers);

}  // namespace paceline
