#include "cluster/report/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/failure_text.h"
#include "base/text_file.h"
#include "cluster/report/json_values.h"
#include "cluster/report/task_json.h"
#include "paceline/cluster.h"
#include "paceline/error.h"

namespace paceline {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::pair<const char*, std::string Circumstances::*> kCircumstances[] = {
    {"version", &Circumstances::version},
    {"host", &Circumstances::host},
    {"started", &Circumstances::started},
    {"command", &Circumstances::command}};

constexpr std::string_view kListPrefix = "fetch/";

// A sum over some of the workers would look like a slow cluster: it is all that trained, or null.
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

void add_section(Json& object, const ReportSection& section) {
  const bool listed = section.name.starts_with(kListPrefix);
  Json values = Json::object();
  if (listed) values["shape"] = section.name.substr(kListPrefix.size());
  for (const auto& [key, value] : section.values) values[key] = to_value(value);
  if (listed) {
    object["fetch"].push_back(std::move(values));
  } else {
    object[section.name] = std::move(values);
  }
}

void read_section(Report& report, const std::string& name, const Json& values) {
  for (const auto& [key, value] : values.items()) {
    if (key != "shape") report.set(name, key, to_number(value));
  }
}

void read_sections(Report& report, const Json& object) {
  constexpr std::string_view kOwn[] = {"model", "strategy", "precision", "flags",   "tasks",
                                       "total", "loss",     "error",     "expected"};
  for (const auto& [name, values] : object.items()) {
    if (std::ranges::find(kOwn, name) != std::end(kOwn)) continue;
    if (values.is_object()) read_section(report, name, values);
    if (!values.is_array()) continue;
    for (const Json& entry : values) {
      read_section(report, std::string(kListPrefix) + entry.at("shape").get<std::string>(), entry);
    }
  }
}

// Reports of earlier versions do not have all of them.
void read_numbers(const Json& object, const char* name,
                  std::vector<std::pair<std::string, double>>& numbers) {
  if (!object.contains(name)) return;
  for (const auto& [key, number] : object[name].items()) {
    numbers.emplace_back(key, number.get<double>());
  }
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

std::string Report::to_json() const {
  Json object;
  object["model"] = model;
  for (const auto& [name, text] : kCircumstances) {
    if (!(circumstances.*text).empty()) object[name] = circumstances.*text;
  }
  object["strategy"] = strategy;
  if (accumulate != 1) object["accumulate"] = accumulate;
  if (towers != 1) object["towers"] = towers;
  object["precision"] = precision;
  object["cores"] = cores ? Json(*cores) : Json(nullptr);
  for (const auto& [flag, value] : flags) object["flags"][flag] = value;
  object["tasks"] = Json::array();
  for (const TaskReport& task : tasks) object["tasks"].push_back(task_to_json(task));
  object["total"] = {{"steps_per_s", to_value(steps_per_s())},
                     {"examples_per_s", to_value(total(tasks, &TaskReport::examples_per_s))}};
  object["global_step"] = global_step ? Json(*global_step) : Json(nullptr);
  object["loss"] = {{"first", to_value(first_loss)}, {"last", to_value(last_loss)}};
  for (const ReportSection& section : sections) add_section(object, section);
  if (expected) {
    object["expected"] = {{"steps_per_s", expected->steps_per_s},
                          {"low", expected->low},
                          {"high", expected->high},
                          {"limit", expected->limit},
                          {"limited_by", expected->limited_by},
                          {"way", expected->way},
                          {"other_ways", to_object(expected->other_ways)},
                          {"machine", to_object(expected->machine)},
                          {"workers", expected->workers}};
  }
  if (!error.empty()) object["error"] = error;
  // A message may hold bytes of a peer or a file that are no UTF-8; the report is written all the
  // same.
  return object.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Report Report::from_json(const std::string& text) {
  try {
    const Json object = Json::parse(text);
    Report report;
    report.model = object.at("model").get<std::string>();
    for (const auto& [name, text] : kCircumstances) {
      report.circumstances.*text = object.value(name, std::string());
    }
    report.strategy = object.at("strategy").get<std::string>();
    report.accumulate = object.value("accumulate", report.accumulate);
    report.towers = object.value("towers", report.towers);
    report.precision = object.value("precision", report.precision);
    // Reports of earlier versions have none.
    if (object.contains("cores") && !object["cores"].is_null()) report.cores = object["cores"];
    if (report.cores.value_or(1) < 1) {
      throw Error(ErrorCode::kDataLoss,
                  fmt::format("not a report: a machine of {} cores", *report.cores));
    }
    if (object.contains("flags")) {
      for (const auto& [flag, value] : object["flags"].items()) {
        report.flags.emplace_back(flag, value.get<std::string>());
      }
    }
    for (const Json& task : object.at("tasks")) report.tasks.push_back(task_from_json(task));
    report.first_loss = to_number(object.at("loss").at("first"));
    report.last_loss = to_number(object.at("loss").at("last"));
    const auto global_step = object.find("global_step");
    if (global_step != object.end() && !global_step->is_null()) {
      report.global_step = global_step->get<std::int64_t>();
    }
    if (object.contains("expected")) {
      const Json& expected = object["expected"];
      report.expected = {.steps_per_s = expected.at("steps_per_s"),
                         .low = expected.at("low"),
                         .high = expected.at("high"),
                         .limit = expected.at("limit").get<std::string>(),
                         .limited_by = expected.value("limited_by", ""),
                         .way = expected.value("way", ""),
                         .workers = expected.value("workers", 0)};
      read_numbers(expected, "other_ways", report.expected->other_ways);
      read_numbers(expected, "machine", report.expected->machine);
    }
    report.error = object.value("error", "");
    read_sections(report, object);
    return report;
  } catch (const Json::parse_error& error) {
    throw Error(ErrorCode::kDataLoss, fmt::format("not a report: no JSON at byte {}", error.byte));
  } catch (const Json::exception& error) {
    throw Error(ErrorCode::kDataLoss, fmt::format("not a report: {}", failure_text(error)));
  }
}

std::string report_in(const std::string& folder) {
  return folder + (folder.ends_with('/') ? "report.json" : "/report.json");
}

void write_report(const std::string& path, const Report& report) {
  write_text_file("the report", path, report.to_json());
}

Report read_report(const std::string& run) {
  std::error_code unseen;  // a folder that may not be looked at cannot be read either
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
