#include "checkpoint/best_mark.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "checkpoint/data_loss.h"
#include "checkpoint/strict_json.h"

namespace paceline {
namespace {

using Lines = nlohmann::ordered_json;  // members keep their order

constexpr int kMarkDepth = 4;
constexpr int kMarkVersion = 1;
constexpr const char* kSmallest = "min";
constexpr const char* kLargest = "max";

double number_of(const nlohmann::json& value, const std::string& what) {
  if (!value.is_number()) data_loss(what, "is no number");
  return value.get<double>();
}

void check_mark_version(const nlohmann::json& object, const std::string& path) {
  const std::int64_t version = whole_number(member(object, "version", path), path + ", version");
  if (version == kMarkVersion) return;
  data_loss(path, fmt::format("version {}; this program reads version {}", version, kMarkVersion));
}

}  // namespace

bool BestBy::better(double value, double than) const {
  return std::isfinite(value) && (largest ? value > than : value < than);
}

std::string BestMark::to_json() const {
  Lines object;
  object["version"] = kMarkVersion;
  object["name"] = by.name;
  object["best"] = by.largest ? kLargest : kSmallest;
  if (best) {
    object["step"] = best->step;
    object["value"] = best->value;
  }
  return object.dump(1, ' ', false, Lines::error_handler_t::replace) + "\n";
}

BestMark BestMark::from_json(std::string_view json, const std::string& path) {
  const nlohmann::json object = parse_strict(json, path, kMarkDepth);
  check_mark_version(object, path);
  BestMark mark;
  mark.by.name = text_of(member(object, "name", path), path + ", name");
  const std::string best = text_of(member(object, "best", path), path + ", best");
  if (best != kSmallest && best != kLargest) data_loss(path, "best is neither min nor max");
  mark.by.largest = best == kLargest;
  if (!object.contains("step")) return mark;
  mark.best = Checkpoint{whole_number(object["step"], path + ", step"),
                         number_of(member(object, "value", path), path + ", value")};
  return mark;
}

std::string EvaluationReport::to_json() const {
  Lines object;
  object["version"] = kMarkVersion;
  object["step"] = step;
  object["numbers"] = Lines::object();
  for (const auto& [name, value] : numbers) {
    if (std::isfinite(value)) object["numbers"][name] = value;
  }
  return object.dump(1, ' ', false, Lines::error_handler_t::replace) + "\n";
}

EvaluationReport EvaluationReport::from_json(std::string_view json, const std::string& path) {
  const nlohmann::json object = parse_strict(json, path, kMarkDepth);
  check_mark_version(object, path);
  EvaluationReport report;
  report.step = whole_number(member(object, "step", path), path + ", step");
  const nlohmann::json& numbers = member(object, "numbers", path);
  if (!numbers.is_object()) data_loss(path, "\"numbers\" is no object");
  for (const auto& [name, value] : numbers.items()) {
    report.numbers[name] = number_of(value, fmt::format("{}, {}", path, name));
  }
  return report;
}

}  // namespace paceline
