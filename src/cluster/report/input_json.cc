#include "cluster/report/input_json.h"

#include <nlohmann/json.hpp>

namespace paceline {

nlohmann::ordered_json input_to_json(const InputReport& input) {
  nlohmann::ordered_json object = {
      {"records", input.records}, {"batches", input.batches},           {"bad", input.bad},
      {"threads", input.threads}, {"most_threads", input.most_threads}, {"seconds", input.seconds},
      {"waited", input.waited},   {"capacity", input.capacity()}};
  const StageReport* const slowest = input.slowest();
  object["slowest"] = slowest != nullptr ? nlohmann::ordered_json(slowest->name) : nullptr;
  object["stages"] = nlohmann::ordered_json::array();
  for (const StageReport& stage : input.stages) {
    object["stages"].push_back(
        {{"stage", stage.name},
         {"records", stage.records},
         {"seconds", stage.seconds},
         {"records_per_s", stage.records_per_s},
         {"fill", stage.fill ? nlohmann::ordered_json(*stage.fill) : nullptr}});
  }
  return object;
}

InputReport input_from_json(const nlohmann::ordered_json& object) {
  InputReport input = {.records = object.at("records").get<std::int64_t>(),
                       .batches = object.at("batches").get<std::int64_t>(),
                       .bad = object.at("bad").get<std::int64_t>(),
                       .threads = object.at("threads").get<int>(),
                       .most_threads = object.at("most_threads").get<int>(),
                       .seconds = object.at("seconds").get<double>(),
                       .waited = object.at("waited").get<double>()};
  for (const auto& stage : object.at("stages")) {
    input.stages.push_back({.name = stage.at("stage").get<std::string>(),
                            .records = stage.at("records").get<std::int64_t>(),
                            .seconds = stage.at("seconds").get<double>(),
                            .records_per_s = stage.at("records_per_s").get<double>()});
    if (!stage.at("fill").is_null()) input.stages.back().fill = stage.at("fill").get<double>();
  }
  return input;
}

}  // namespace paceline
