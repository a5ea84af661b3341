#include "run/report/record_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <type_traits>

#include "paceline/error.h"
#include "run/report/report_fields.h"

namespace paceline {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kListPrefix = "fetch/";  // of sections that stand in one list

template <typename Record>
Json written(const Record& record, Digits digits);
template <typename Record>
Record read_from(const JsonPlace& object);

// "step_ms" of "step_ms.p50", and "p50".
std::pair<std::string_view, std::string_view> split(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  if (dot == path.npos) return {{}, path};
  return {path.substr(0, dot), path.substr(dot + 1)};
}

Json& member_at(Json& object, std::string_view path) {
  const auto [parents, name] = split(path);
  return (parents.empty() ? object : member_at(object, parents))[std::string(name)];
}

void add_section(Json& object, const ReportSection& section) {
  const bool listed = section.name.starts_with(kListPrefix);
  Json values = Json::object();
  if (listed) values["shape"] = section.name.substr(kListPrefix.size());
  for (const auto& [key, value] : section.values) values[key] = value ? Json(*value) : Json();
  if (listed) {
    object["fetch"].push_back(std::move(values));
  } else {
    object[section.name] = std::move(values);
  }
}

/// Writes the values of fields.
class Writer {
 public:
  explicit Writer(Digits digits) : digits_(digits) {}

  Json value(double number) const {
    return digits_ == Digits::kAll ? Json(number) : six_digits(number);
  }
  Json value(std::int64_t number) const { return number; }
  Json value(int number) const { return number; }
  Json value(bool is) const { return is; }
  Json value(const std::string& text) const { return text; }
  Json value(const std::vector<std::string>& texts) const { return texts; }
  template <typename T>
  Json value(const std::vector<std::pair<std::string, T>>& named) const {
    Json object = Json::object();
    for (const auto& [name, each] : named) object[name] = value(each);
    return object;
  }
  template <typename T>
  Json value(const std::optional<T>& known) const {
    return known ? value(*known) : Json(nullptr);
  }
  template <typename Record>
  Json value(const std::vector<Record>& records) const {
    Json list = Json::array();
    for (const Record& each : records) list.push_back(value(each));
    return list;
  }
  template <typename Record>
  Json value(const Record& record) const {
    return written(record, digits_);
  }

 private:
  const Digits digits_;
};

template <typename Record>
Json written(const Record& record, Digits digits) {
  static const Record empty;
  Json object;
  const Writer writer(digits);
  for (const ReportField<Record>& field : report_fields<Record>()) {
    visit_field(field, record, [&]<typename T>(const T& place) {
      if constexpr (std::is_same_v<T, FieldPlace<Record, std::vector<ReportSection>>>) {
        for (const ReportSection& section : place.of(record)) add_section(object, section);
      } else {
        const auto& value = place.of(record);
        if (field.if_known && value == place.of(empty)) return;
        member_at(object, field.name) = writer.value(value);
      }
    });
  }
  return object;
}

// JSON has no NaN, so a null stands for it.
void read_value(const JsonPlace& place, double& number, bool may_be_nan) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  number = may_be_nan ? place.measured().value_or(none) : place.number();
}
void read_value(const JsonPlace& place, std::optional<double>& number, bool) {
  number = place.measured();
}
void read_value(const JsonPlace& place, std::int64_t& number, bool) {
  number = place.whole_number();
}
void read_value(const JsonPlace& place, int& number, bool) { number = place.count(); }
void read_value(const JsonPlace& place, bool& is, bool) { is = place.is_true(); }
void read_value(const JsonPlace& place, std::string& text, bool) { text = place.text(); }
void read_value(const JsonPlace& place, std::vector<std::string>& texts, bool) {
  for (const JsonPlace& each : place.items()) texts.push_back(each.text());
}
template <typename T>
void read_value(const JsonPlace& place, std::vector<std::pair<std::string, T>>& named, bool) {
  for (const auto& [name, member] : place.members()) {
    read_value(member, named.emplace_back(name, T()).second, false);
  }
}
template <typename T>
void read_value(const JsonPlace& place, std::optional<T>& known, bool) {
  if constexpr (std::is_class_v<T>) {
    known = read_from<T>(place);
  } else {
    read_value(place, known.emplace(), false);
  }
}
template <typename Record>
void read_value(const JsonPlace& place, std::vector<Record>& records, bool) {
  for (const JsonPlace& each : place.items()) records.push_back(read_from<Record>(each));
}

/// Returns the place of the field in the object; empty when an earlier version, which did not have
/// the field, wrote the object.
template <typename Record>
std::optional<JsonPlace> place_of(const JsonPlace& object, const ReportField<Record>& field) {
  const std::string_view may_miss = field.if_known ? field.name : field.later;
  JsonPlace at = object;
  for (std::size_t begin = 0; begin <= field.name.size();) {
    const std::size_t end = std::min(field.name.find('.', begin), field.name.size());
    const std::string part(field.name.substr(begin, end - begin));
    if (end <= may_miss.size()) {
      const auto found = at.find(part);
      if (!found) return std::nullopt;
      at = *found;
    } else {
      at = at.at(part);
    }
    begin = end + 1;
  }
  return at;
}

void read_section(Report& report, const std::string& name, const JsonPlace& values) {
  for (const auto& [key, value] : values.members()) {
    if (key != "shape") report.set(name, key, value.measured());
  }
}

// Reads the sections: the members of the object that belong to no field.
void read_sections(Report& report, const JsonPlace& object) {
  std::set<std::string_view> own;
  for (const ReportField<Report>& field : report_fields<Report>()) {
    own.insert(field.name.substr(0, field.name.find('.')));
  }
  for (const auto& [name, values] : object.members()) {
    if (own.contains(name)) continue;
    if (values.is_object()) read_section(report, name, values);
    if (!values.is_list()) continue;
    for (const JsonPlace& entry : values.items()) {
      read_section(report, std::string(kListPrefix) + entry.at("shape").text(), entry);
    }
  }
}

template <typename Record>
Record read_from(const JsonPlace& object) {
  Record record;
  for (const ReportField<Record>& field : report_fields<Record>()) {
    visit_field(field, record, [&]<typename T>(const T& place) {
      if constexpr (std::is_same_v<T, FieldPlace<Record, std::vector<ReportSection>>>) {
        if constexpr (std::is_same_v<Record, Report>) read_sections(record, object);
      } else if constexpr (!std::is_same_v<T, DerivedField<Record, double>> &&
                           !std::is_same_v<T, DerivedField<Record, std::string>>) {
        const std::optional<JsonPlace> at = place_of(object, field);
        if (at) read_value(*at, place.in(record), field.may_be_nan);
      }
    });
  }
  return record;
}

}  // namespace

Json six_digits(std::optional<double> number) {
  if (!number || !std::isfinite(*number)) return nullptr;
  return std::strtod(fmt::format("{:.6g}", *number).c_str(), nullptr);
}

Json to_json_value(const Report& report) { return written(report, Digits::kAll); }

Json to_json_value(const LiveTask& task, Digits digits) { return written(task, digits); }

Report report_from_json(const JsonPlace& object) {
  Report report = read_from<Report>(object);
  if (report.cores == 0) throw Error(ErrorCode::kDataLoss, "a machine of 0 cores");
  return report;
}

}  // namespace paceline
