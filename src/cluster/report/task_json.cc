#include "cluster/report/task_json.h"

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "cluster/report/input_json.h"
#include "cluster/report/json_values.h"

namespace paceline {
namespace {

using Json = nlohmann::ordered_json;

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
                        {"disk_wait", to_value(use.pressure.disk_wait)},
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
      .disk_wait = to_number(pressure.at("disk_wait")),
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

}  // namespace

Json task_to_json(const TaskReport& task) {
  Json object;
  object["task"] = task.task;
  object["steps"] = task.steps;
  object["seconds"] = to_value(task.seconds);
  if (!task.is_ps()) {
    object["steps_per_s"] = to_value(task.steps_per_s);
    object["examples_per_s"] = to_value(task.examples_per_s);
    object["unit"] = task.unit;
    object["step_ms"] = {{"p50", to_value(task.step_ms_p50)},
                         {"p99", to_value(task.step_ms_p99)},
                         {"max", to_value(task.step_ms_max)}};
  }
  object["share"] = to_object(task.share);
  if (!task.is_ps()) {
    object["hidden_ms"] = to_value(task.hidden_ms);
    object["network_bytes_per_step"] = {{"sent", to_value(task.step_sent)},
                                        {"received", to_value(task.step_received)}};
    object["staleness"] = {{"mean", to_value(task.staleness_mean)},
                           {"p95", to_value(task.staleness_p95)}};
    if (task.copies_ms) object["copies_ms"] = *task.copies_ms;
    if (task.dropped) object["dropped"] = *task.dropped;
    if (task.skipped) object["skipped"] = *task.skipped;
  }
  if (task.kept) {
    object["kept"] = {{"bytes", task.kept->bytes},
                      {"largest", task.kept->largest},
                      {"largest_bytes", task.kept->largest_bytes}};
  }
  object["use"] = to_object(task.use, task.is_ps());
  for (const LinkReport& link : task.links) object["links"].push_back(to_object(link));
  for (const KernelReport& kernel : task.kernels) object["kernels"].push_back(to_object(kernel));
  if (task.input) object["input"] = input_to_json(*task.input);
  return object;
}

TaskReport task_from_json(const Json& object) {
  TaskReport task;
  task.task = object.at("task").get<std::string>();
  task.steps = object.at("steps").get<std::int64_t>();
  task.seconds = to_number(object.at("seconds"));
  for (const auto& [name, part] : object.at("share").items()) {
    task.share.emplace_back(name, part.get<double>());
  }
  // Reports of earlier versions have none.
  if (object.contains("use")) task.use = to_use(object.at("use"));
  if (object.contains("kept")) {
    const Json& kept = object["kept"];
    task.kept = {.bytes = kept.at("bytes"),
                 .largest = kept.at("largest").get<std::string>(),
                 .largest_bytes = kept.at("largest_bytes")};
  }
  if (task.is_ps()) return task;
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
  if (object.contains("copies_ms")) task.copies_ms = object["copies_ms"].get<double>();
  if (object.contains("dropped")) task.dropped = object["dropped"].get<std::int64_t>();
  if (object.contains("skipped")) task.skipped = object["skipped"].get<std::int64_t>();
  return task;
}

}  // namespace paceline
