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
#include "cluster/report/input_json.h"
#include "paceline/cluster.h"
#include "paceline/error.h"

namespace paceline {

namespace {

// The members are ordered, so that the file reads as its documentation does.
using Json = nlohmann::ordered_json;

constexpr std::pair<const char*, std::string Circumstances::*> kCircumstances[] = {
    {"version", &Circumstances::version},
    {"host", &Circumstances::host},
    {"started", &Circumstances::started},
    {"command", &Circumstances::command}};

constexpr std::string_view kListPrefix = "fetch/";

Json to_value(const std::optional<double>& number) {
  return number ? Json(*number) : Json(nullptr);
}

std::optional<double> to_number(const Json& value) {
  if (value.is_null()) return std::nullopt;
  return value.get<double>();
}

bool is_ps(const TaskReport& task) { return task.task.starts_with("ps:"); }

Json to_object(const std::vector<std::pair<std::string, double>>& share) {
  Json object = Json::object();
  for (const auto& [name, part] : share) object[name] = part;
  return object;
}

Json to_object(const TaskUse& use, bool ps) {
  Json object;
  object["cores"] = to_value(use.cores);
  if (!ps) object["device_busy"] = to_value(use.device_busy);
  object["network_bytes_per_s"] = {{"sent", to_value(use.sent)},
                                   {"received", to_value(use.received)}};
  object["disk_bytes_per_s"] = {{"read", to_value(use.disk_read)},
                                {"written", to_value(use.disk_written)}};
  object["peak_memory_bytes"] = to_value(use.peak_memory);
  if (use.seconds <= 0) return object;
  object["seconds"] = use.seconds;
  object["pressure"] = {{"queued", to_value(use.pressure.queued)},
                        {"waited", to_value(use.pressure.waited)},
                        {"machine_cores", to_value(use.pressure.machine_cores)},
                        {"major_faults_per_s", to_value(use.pressure.major_faults)},
                        {"memory_wait", to_value(use.pressure.memory_wait)},
                        {"stopped_s", use.pressure.stops.seconds},
                        {"longest_stop_s", use.pressure.stops.longest}};
  return object;
}

TaskUse to_use(const Json& object) {
  TaskUse use;
  use.cores = to_number(object.at("cores"));
  if (object.contains("device_busy")) use.device_busy = to_number(object.at("device_busy"));
  use.sent = to_number(object.at("network_bytes_per_s").at("sent"));
  use.received = to_number(object.at("network_bytes_per_s").at("received"));
  use.disk_read = to_number(object.at("disk_bytes_per_s").at("read"));
  use.disk_written = to_number(object.at("disk_bytes_per_s").at("written"));
  use.peak_memory = to_number(object.at("peak_memory_bytes"));
  if (!object.contains("pressure")) return use;
  use.seconds = object.at("seconds");
  const Json& pressure = object["pressure"];
  use.pressure = {
      .queued = to_number(pressure.at("queued")),
      .waited = to_number(pressure.at("waited")),
      .machine_cores = to_number(pressure.at("machine_cores")),
      .major_faults = to_number(pressure.at("major_faults_per_s")),
      .memory_wait = to_number(pressure.at("memory_wait")),
      .stops = {.seconds = pressure.at("stopped_s"), .longest = pressure.at("longest_stop_s")}};
  return use;
}

Json to_object(const LinkReport& link) {
  Json object;
  object["to"] = link.to;
  object["kind"] = link.kind;
  object["round_trip_us"] = to_value(link.round_trip_us);
  object["bytes_per_step"] = {{"sent", to_value(link.step_sent)},
                              {"received", to_value(link.step_received)}};
  object["bytes_per_s"] = {{"sent", to_value(link.sent)}, {"received", to_value(link.received)}};
  if (link.most) object["bytes_per_s"]["most"] = *link.most;
  return object;
}

LinkReport to_link(const Json& object) {
  LinkReport link;
  link.to = object.at("to").get<std::string>();
  link.kind = object.at("kind").get<std::string>();
  link.round_trip_us = to_number(object.at("round_trip_us"));
  link.step_sent = to_number(object.at("bytes_per_step").at("sent"));
  link.step_received = to_number(object.at("bytes_per_step").at("received"));
  link.sent = to_number(object.at("bytes_per_s").at("sent"));
  link.received = to_number(object.at("bytes_per_s").at("received"));
  if (object.at("bytes_per_s").contains("most")) link.most = object["bytes_per_s"]["most"];
  return link;
}

Json to_object(const KernelReport& kernel) {
  Json object;
  object["op"] = kernel.op;
  object["per_step"] = kernel.per_step;
  object["ms"] = kernel.ms;
  object["share"] = kernel.share;
  return object;
}

KernelReport to_kernel(const Json& object) {
  return {.op = object.at("op").get<std::string>(),
          .per_step = object.at("per_step").get<double>(),
          .ms = object.at("ms").get<double>(),
          .share = object.at("share").get<double>()};
}

Json to_object(const TaskReport& task) {
  Json object;
  object["task"] = task.task;
  object["steps"] = task.steps;
  object["seconds"] = to_value(task.seconds);
  if (!is_ps(task)) {
    object["steps_per_s"] = to_value(task.steps_per_s);
    object["examples_per_s"] = to_value(task.examples_per_s);
    object["unit"] = task.unit;
    object["step_ms"] = {{"p50", to_value(task.step_ms_p50)},
                         {"p99", to_value(task.step_ms_p99)},
                         {"max", to_value(task.step_ms_max)}};
  }
  object["share"] = to_object(task.share);
  if (!is_ps(task)) {
    object["hidden_ms"] = to_value(task.hidden_ms);
    object["network_bytes_per_step"] = {{"sent", to_value(task.step_sent)},
                                        {"received", to_value(task.step_received)}};
    object["staleness"] = {{"mean", to_value(task.staleness_mean)},
                           {"p95", to_value(task.staleness_p95)}};
    if (task.dropped) object["dropped"] = *task.dropped;
    if (task.skipped) object["skipped"] = *task.skipped;
  }
  object["use"] = to_object(task.use, is_ps(task));
  for (const LinkReport& link : task.links) object["links"].push_back(to_object(link));
  for (const KernelReport& kernel : task.kernels) object["kernels"].push_back(to_object(kernel));
  if (task.input) object["input"] = input_to_json(*task.input);
  return object;
}

TaskReport to_task(const Json& object) {
  TaskReport task;
  task.task = object.at("task").get<std::string>();
  task.steps = object.at("steps").get<std::int64_t>();
  task.seconds = to_number(object.at("seconds"));
  for (const auto& [name, part] : object.at("share").items()) {
    task.share.emplace_back(name, part.get<double>());
  }
  // Reports of earlier versions have none.
  if (object.contains("use")) task.use = to_use(object.at("use"));
  if (is_ps(task)) return task;
  if (object.contains("links")) {
    for (const Json& link : object["links"]) task.links.push_back(to_link(link));
  }
  if (object.contains("input")) task.input = input_from_json(object["input"]);
  if (object.contains("kernels")) {
    for (const Json& kernel : object["kernels"]) task.kernels.push_back(to_kernel(kernel));
  }
  task.steps_per_s = to_number(object.at("steps_per_s"));
  task.examples_per_s = to_number(object.at("examples_per_s"));
  task.unit = object.at("unit").get<std::string>();
  task.step_ms_p50 = to_number(object.at("step_ms").at("p50"));
  task.step_ms_p99 = to_number(object.at("step_ms").at("p99"));
  if (object["step_ms"].contains("max")) task.step_ms_max = to_number(object["step_ms"]["max"]);
  task.hidden_ms = to_number(object.at("hidden_ms"));
  if (object.contains("network_bytes_per_step")) {
    task.step_sent = to_number(object["network_bytes_per_step"].at("sent"));
    task.step_received = to_number(object["network_bytes_per_step"].at("received"));
  }
  if (object.contains("staleness")) {
    task.staleness_mean = to_number(object["staleness"].at("mean"));
    task.staleness_p95 = to_number(object["staleness"].at("p95"));
  }
  if (object.contains("dropped")) task.dropped = object["dropped"].get<std::int64_t>();
  if (object.contains("skipped")) task.skipped = object["skipped"].get<std::int64_t>();
  return task;
}

// A sum over some of the workers would look like a slow cluster: it is all that trained, or null.
std::optional<double> total(const std::vector<TaskReport>& tasks,
                            std::optional<double> TaskReport::*rate) {
  std::optional<double> sum;
  for (const TaskReport& task : tasks) {
    if (is_ps(task) || task.steps == 0) continue;
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
  for (const TaskReport& task : tasks) object["tasks"].push_back(to_object(task));
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
                          {"other_ways", to_object(expected->other_ways)}};
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
    if (object.contains("flags")) {
      for (const auto& [flag, value] : object["flags"].items()) {
        report.flags.emplace_back(flag, value.get<std::string>());
      }
    }
    for (const Json& task : object.at("tasks")) report.tasks.push_back(to_task(task));
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
                         .limited_by = expected.value("limited_by", std::string())};
      if (expected.contains("other_ways")) {
        for (const auto& [way, speed] : expected["other_ways"].items()) {
          report.expected->other_ways.emplace_back(way, speed.get<double>());
        }
      }
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

void write_report(const std::string& path, const Report& report) {
  write_text_file("the report", path, report.to_json());
}

Report read_report(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(ErrorCode::kNotFound, fmt::format("no report at {}", path));
  if (std::filesystem::is_directory(path)) {
    throw Error(ErrorCode::kNotFound, fmt::format("{} is a folder, not a report", path));
  }
  try {
    return Report::from_json(std::string(std::istreambuf_iterator<char>(file), {}));
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", path, error.what()));
  }
}

}  // namespace paceline
