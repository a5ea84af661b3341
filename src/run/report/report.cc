#include "run/report/report.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/failure_text.h"
#include "base/text_file.h"
#include "paceline/error.h"
#include "run/report/json_place.h"
#include "run/report/record_json.h"

namespace paceline {

namespace {

using Json = nlohmann::ordered_json;

// Returns the sum over all workers that trained; nothing if one of them has no number, since a sum
// over some workers would look like a slow cluster.
std::optional<double> total(const std::vector<TaskReport>& tasks,
                            std::optional<double> TaskReport::*rate) {
  std::optional<double> sum;
  for (const TaskReport& task : tasks) {
    if (task.is_ps() || task.steps == 0) continue;
    if (!(task.*rate)) return std::nullopt;
    sum = sum.value_or(0) + *(task.*rate);
  }
  return sum;
}

}  // namespace

void Report::set(const std::string& section, const std::string& key, std::optional<double> value) {
  auto at = std::ranges::find(sections, section, &ReportSection::name);
  if (at == sections.end()) at = sections.insert(at, ReportSection{section, {}});
  const auto old = std::ranges::find(at->values, key, [](const auto& item) { return item.first; });
  if (old != at->values.end()) {
    old->second = value;
  } else {
    at->values.emplace_back(key, value);
  }
}

std::string_view Report::flag_of_other_commands() const {
  for (const std::string_view flag :
       {"--cluster", "--ps-hosts", "--worker-hosts", "--existing-servers"}) {
    if (std::ranges::find(flags, flag, &std::pair<std::string, std::string>::first) != flags.end())
      return flag;
  }
  return {};
}

std::optional<double> Report::value(std::string_view section, std::string_view key) const {
  const auto at = std::ranges::find(sections, section, &ReportSection::name);
  if (at == sections.end()) return {};
  const auto item = std::ranges::find(at->values, key, [](const auto& each) { return each.first; });
  return item != at->values.end() ? item->second : std::nullopt;
}

std::int64_t Report::steps() const {
  std::int64_t sum = 0;
  for (const TaskReport& task : tasks) sum += task.steps;
  return sum;
}

std::optional<double> Report::steps_per_s() const { return total(tasks, &TaskReport::steps_per_s); }

std::optional<double> Report::examples_per_s() const {
  return total(tasks, &TaskReport::examples_per_s);
}

std::string Report::to_json() const {
  // A message may hold bytes of a peer or a file that are no UTF-8; the report is written
  // nevertheless.
  return to_json_value(*this).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Report Report::from_json(const std::string& text) {
  try {
    const Json object = Json::parse(text);
    return report_from_json(JsonPlace(object));
  } catch (const Json::exception& error) {
    throw Error(ErrorCode::kDataLoss, fmt::format("not a report: {}", failure_text(error)));
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("not a report: {}", error.what()));
  }
}

std::string report_in(const std::string& folder) {
  return folder + (folder.ends_with('/') ? "report.json" : "/report.json");
}

void write_report(const std::string& path, const Report& report) {
  write_text_file("the report", path, report.to_json());
}

Report read_report(const std::string& run) {
  // This error is ignored, since a folder that cannot be looked at cannot be read either.
  std::error_code unseen;
  const bool folder = std::filesystem::is_directory(run, unseen);
  const std::string path = folder ? report_in(run) : run;
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(ErrorCode::kNotFound, fmt::format("no report at {}", path));
  try {
    return Report::from_json(std::string(std::istreambuf_iterator<char>(file), {}));
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", path, error.what()));
  }
}

}  // namespace paceline
