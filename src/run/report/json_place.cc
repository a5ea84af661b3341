#include "run/report/json_place.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/plain_text.h"
#include "paceline/error.h"

namespace paceline {
namespace {

using Json = nlohmann::ordered_json;

// Returns the path to a value. It is searched only for an error, so that reading valid reports
// costs nothing extra.
std::optional<std::string> path_to(const Json& value, const Json& from, const std::string& path) {
  if (&from == &value) return path;
  if (from.is_array()) {
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (auto found = path_to(value, from[i], fmt::format("{}[{}]", path, i))) return found;
    }
  }
  if (from.is_object()) {
    for (const auto& [name, member] : from.items()) {
      const std::string longer = path.empty() ? name : fmt::format("{}.{}", path, name);
      if (auto found = path_to(value, member, longer)) return found;
    }
  }
  return std::nullopt;
}

}  // namespace

void JsonPlace::refuse(const std::string& why) const {
  const std::string path = path_to(*value_, *document_, "").value_or("");
  throw Error(ErrorCode::kDataLoss, plain_text((path.empty() ? "it" : path) + " " + why));
}

JsonPlace JsonPlace::at(const std::string& name) const {
  if (!value_->is_object()) refuse("is no object");
  const auto found = value_->find(name);
  if (found == value_->end()) refuse(fmt::format("has no \"{}\"", name));
  return {*document_, *found};
}

std::optional<JsonPlace> JsonPlace::find(const std::string& name) const {
  if (!value_->is_object()) refuse("is no object");
  const auto found = value_->find(name);
  if (found == value_->end() || found->is_null()) return std::nullopt;
  return JsonPlace(*document_, *found);
}

std::vector<JsonPlace> JsonPlace::items() const {
  if (!value_->is_array()) refuse("is no list");
  std::vector<JsonPlace> items;
  for (const Json& item : *value_) items.push_back({*document_, item});
  return items;
}

std::vector<std::pair<std::string, JsonPlace>> JsonPlace::members() const {
  if (!value_->is_object()) refuse("is no object");
  std::vector<std::pair<std::string, JsonPlace>> members;
  for (const auto& [name, member] : value_->items()) {
    members.emplace_back(plain_text(name), JsonPlace(*document_, member));
  }
  return members;
}

bool JsonPlace::is_list() const { return value_->is_array(); }

bool JsonPlace::is_object() const { return value_->is_object(); }

std::string JsonPlace::text() const {
  if (!value_->is_string()) refuse("is no text");
  return plain_lines(value_->get_ref<const std::string&>());
}

double JsonPlace::number() const {
  if (!value_->is_number()) refuse("is no number");
  return value_->get<double>();
}

bool JsonPlace::is_true() const {
  if (!value_->is_boolean()) refuse("is neither true nor false");
  return value_->get<bool>();
}

std::int64_t JsonPlace::whole_number() const {
  const double number = this->number();
  constexpr double kBeyond = 0x1p63;
  if (number != std::floor(number) || number < -kBeyond || number >= kBeyond) {
    refuse("is no whole number");
  }
  return value_->get<std::int64_t>();
}

int JsonPlace::count() const {
  const std::int64_t number = whole_number();
  if (number < 0 || number > std::numeric_limits<int>::max()) refuse("is no count");
  return int(number);
}

std::optional<double> JsonPlace::measured() const {
  if (value_->is_null()) return std::nullopt;
  return number();
}

}  // namespace paceline
