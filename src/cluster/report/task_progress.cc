#include "cluster/report/task_progress.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/failure_text.h"
#include "paceline/error.h"

namespace paceline {

std::string TaskProgress::to_json() const {
  using Json = nlohmann::ordered_json;
  Json object;
  object["at"] = at;
  object["lines"] = lines;
  object["report"] = Json::parse(report.to_json());
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

TaskProgress TaskProgress::from_json(const std::string& text) {
  using Json = nlohmann::ordered_json;
  try {
    const Json object = Json::parse(text);
    return {.at = object.at("at").get<double>(),
            .report = Report::from_json(object.at("report").dump()),
            .lines = object.at("lines").get<std::vector<std::string>>()};
  } catch (const Json::exception& error) {
    throw Error(ErrorCode::kDataLoss,
                fmt::format("not a task's progress: {}", failure_text(error)));
  }
}

}  // namespace paceline
