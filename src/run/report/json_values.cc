#include "run/report/json_values.h"

#include <nlohmann/json.hpp>

namespace paceline {

nlohmann::ordered_json to_value(const std::optional<double>& number) {
  return number ? nlohmann::ordered_json(*number) : nlohmann::ordered_json(nullptr);
}

nlohmann::ordered_json to_object(const std::vector<std::pair<std::string, double>>& numbers) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (const auto& [name, number] : numbers) object[name] = number;
  return object;
}

}  // namespace paceline
