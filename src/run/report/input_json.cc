#include "run/report/input_json.h"

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

InputReport input_from_json(const JsonPlace& object) {
  InputReport input = {.records = object.at("records").whole_number(),
                       .batches = object.at("batches").whole_number(),
                       .bad = object.at("bad").whole_number(),
                       .threads = object.at("threads").count(),
                       .most_threads = object.at("most_threads").count(),
                       .seconds = object.at("seconds").number(),
                       .waited = object.at("waited").number()};
  for (const JsonPlace& stage : object.at("stages").items()) {
    input.stages.push_back({.name = stage.at("stage").text(),
                            .records = stage.at("records").whole_number(),
                            .seconds = stage.at("seconds").number(),
                            .records_per_s = stage.at("records_per_s").number(),
                            .fill = stage.at("fill").measured()});
  }
  return input;
}

}  // namespace paceline
