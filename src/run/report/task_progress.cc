#include "run/report/task_progress.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/failure_text.h"
#include "paceline/error.h"
#include "run/report/json_place.h"
#include "run/report/record_json.h"

namespace paceline {

std::string TaskProgress::to_json() const {
  using Json = nlohmann::ordered_json;
  Json object;
  object["at"] = at;
  object["lines"] = lines;
  for (const auto& [tag, number] : numbers) object["numbers"][tag] = number;
  object["report"] = to_json_value(report);
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

TaskProgress TaskProgress::from_json(const std::string& text) {
  try {
    const nlohmann::ordered_json parsed = nlohmann::ordered_json::parse(text);
    const JsonPlace object(parsed);
    TaskProgress progress{.at = object.at("at").number(),
                          .report = Report::from_json(parsed.at("report").dump())};
    for (const JsonPlace& line : object.at("lines").items()) progress.lines.push_back(line.text());
    if (const auto numbers = object.find("numbers")) {
      for (const auto& [tag, number] : numbers->members()) {
        if (const auto value = number.measured()) progress.numbers.emplace_back(tag, *value);
      }
    }
    return progress;
  } catch (const nlohmann::ordered_json::exception& error) {
    throw Error(ErrorCode::kDataLoss,
                fmt::format("not a task's progress: {}", failure_text(error)));
  }
}

}  // namespace paceline
