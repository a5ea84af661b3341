#include "cluster/report/json_values.h"

#include <nlohmann/json.hpp>

namespace paceline {

nlohmann::ordered_json to_value(const std::optional<double>& number) {
  return number ? nlohmann::ordered_json(*number) : nlohmann::ordered_json(nullptr);
}

std::optional<double> to_number(const nlohmann::ordered_json& value) {
  if (value.is_null()) return std::nullopt;
  return value.get<double>();
}

nlohmann::ordered_json to_object(const std::vector<std::pair<std::string, double>>& numbers) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (const auto& [name, number] : numbers) object[name] = number;
  return object;
}

}  // namespace paceline
