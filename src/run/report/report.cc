#include "run/report/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/failure_text.h"
#include "base/text_file.h"
#include "paceline/cluster.h"
#include "paceline/error.h"
#include "run/report/json_place.h"
#include "run/report/json_values.h"
#include "run/report/report_json.h"
#include "run/report/task_json.h"

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

Json to_object(const LossWindow& window) {
  return {{"mean", window.mean}, {"deviation", window.deviation}, {"steps", window.steps}};
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

void read_section(Report& report, const std::string& name, const JsonPlace& values) {
  for (const auto& [key, value] : values.members()) {
    if (key != "shape") report.set(name, key, value.measured());
  }
}

void read_sections(Report& report, const JsonPlace& object) {
  constexpr std::string_view kOwn[] = {"model", "strategy", "precision", "flags",   "tasks",
                                       "total", "loss",     "error",     "expected"};
  for (const auto& [name, values] : object.members()) {
    if (std::ranges::find(kOwn, name) != std::end(kOwn)) continue;
    if (values.is_object()) read_section(report, name, values);
    if (!values.is_list()) continue;
    for (const JsonPlace& entry : values.items()) {
      read_section(report, std::string(kListPrefix) + entry.at("shape").text(), entry);
    }
  }
}

ExpectedSpeed read_expected(const JsonPlace& object) {
  const auto text = [&](const char* name) {
    const auto there = object.find(name);
    return there ? there->text() : "";
  };
  const auto numbers = [&](const char* name) {
    std::vector<std::pair<std::string, double>> numbers;
    const auto there = object.find(name);
    if (!there) return numbers;
    for (const auto& [key, number] : there->members()) numbers.emplace_back(key, number.number());
    return numbers;
  };
  const auto workers = object.find("workers");
  return {.steps_per_s = object.at("steps_per_s").number(),
          .low = object.at("low").number(),
          .high = object.at("high").number(),
          .limit = object.at("limit").text(),
          .limited_by = text("limited_by"),
          .way = text("way"),
          .other_ways = numbers("other_ways"),
          .machine = numbers("machine"),
          .workers = workers ? workers->count() : 0};
}

// JSON has no NaN: a mean that is null is none.
std::optional<LossWindow> read_window(const JsonPlace& object) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  return LossWindow{object.at("mean").measured().value_or(none),
                    object.at("deviation").measured().value_or(none),
                    object.at("steps").whole_number()};
}

// What may be missing is missing in reports of earlier versions.
Report read(const JsonPlace& object) {
  Report report;
  report.model = object.at("model").text();
  for (const auto& [name, text] : kCircumstances) {
    if (const auto there = object.find(name)) report.circumstances.*text = there->text();
  }
  report.strategy = object.at("strategy").text();
  if (const auto times = object.find("accumulate")) report.accumulate = times->whole_number();
  if (const auto towers = object.find("towers")) report.towers = towers->whole_number();
  if (const auto precision = object.find("precision")) report.precision = precision->text();
  if (const auto tls = object.find("tls")) report.tls = tls->text();
  if (const auto cores = object.find("cores")) report.cores = cores->count();
  if (report.cores == 0) throw Error(ErrorCode::kDataLoss, "a machine of 0 cores");
  if (const auto flags = object.find("flags")) {
    for (const auto& [flag, value] : flags->members()) {
      report.flags.emplace_back(flag, value.text());
    }
  }
  for (const JsonPlace& task : object.at("tasks").items()) {
    report.tasks.push_back(task_from_json(task));
  }
  const JsonPlace loss = object.at("loss");
  report.first_loss = loss.at("first").measured();
  report.last_loss = loss.at("last").measured();
  if (const auto begin = loss.find("begin")) report.loss_begin = read_window(*begin);
  if (const auto end = loss.find("end")) report.loss_end = read_window(*end);
  if (const auto step = object.find("global_step")) report.global_step = step->whole_number();
  if (const auto expected = object.find("expected")) report.expected = read_expected(*expected);
  if (const auto error = object.find("error")) report.error = error->text();
  read_sections(report, object);
  return report;
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

Json report_to_value(const Report& report) {
  Json object;
  object["model"] = report.model;
  for (const auto& [name, text] : kCircumstances) {
    if (!(report.circumstances.*text).empty()) object[name] = report.circumstances.*text;
  }
  object["strategy"] = report.strategy;
  if (report.accumulate != 1) object["accumulate"] = report.accumulate;
  if (report.towers != 1) object["towers"] = report.towers;
  object["precision"] = report.precision;
  if (!report.tls.empty()) object["tls"] = report.tls;
  object["cores"] = report.cores ? Json(*report.cores) : Json(nullptr);
  for (const auto& [flag, value] : report.flags) object["flags"][flag] = value;
  object["tasks"] = Json::array();
  for (const TaskReport& task : report.tasks) object["tasks"].push_back(task_to_json(task));
  object["total"] = {
      {"steps_per_s", to_value(report.steps_per_s())},
      {"examples_per_s", to_value(total(report.tasks, &TaskReport::examples_per_s))}};
  object["global_step"] = report.global_step ? Json(*report.global_step) : Json(nullptr);
  object["loss"] = {{"first", to_value(report.first_loss)}, {"last", to_value(report.last_loss)}};
  if (report.loss_begin) object["loss"]["begin"] = to_object(*report.loss_begin);
  if (report.loss_end) object["loss"]["end"] = to_object(*report.loss_end);
  for (const ReportSection& section : report.sections) add_section(object, section);
  if (report.expected) {
    const ExpectedSpeed& expected = *report.expected;
    object["expected"] = {{"steps_per_s", expected.steps_per_s},
                          {"low", expected.low},
                          {"high", expected.high},
                          {"limit", expected.limit},
                          {"limited_by", expected.limited_by},
                          {"way", expected.way},
                          {"other_ways", to_object(expected.other_ways)},
                          {"machine", to_object(expected.machine)},
                          {"workers", expected.workers}};
  }
  if (!report.error.empty()) object["error"] = report.error;
  return object;
}

std::string Report::to_json() const {
  // A message may hold bytes of a peer or a file that are no UTF-8; the report is written all the
  // same.
  return report_to_value(*this).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Report Report::from_json(const std::string& text) {
  try {
    const Json object = Json::parse(text);
    return read(JsonPlace(object));
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
