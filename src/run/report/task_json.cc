#include "run/report/task_json.h"

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "run/report/input_json.h"
#include "run/report/json_values.h"

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

TaskUse to_use(const JsonPlace& object) {
  TaskUse use;
  use.cores = object.at("cores").measured();
  if (const auto busy = object.find("device_busy")) use.device_busy = busy->number();
  const JsonPlace network = object.at("network_bytes_per_s"), disk = object.at("disk_bytes_per_s");
  use.sent = network.at("sent").measured();
  use.received = network.at("received").measured();
  use.disk_read = disk.at("read").measured();
  use.disk_written = disk.at("written").measured();
  use.peak_memory = object.at("peak_memory_bytes").measured();
  const auto pressure = object.find("pressure");
  if (!pressure) return use;
  use.seconds = object.at("seconds").number();
  use.pressure = {.queued = pressure->at("queued").measured(),
                  .waited = pressure->at("waited").measured(),
                  .machine_cores = pressure->at("machine_cores").measured(),
                  .major_faults = pressure->at("major_faults_per_s").measured(),
                  .memory_wait = pressure->at("memory_wait").measured(),
                  .disk_wait = pressure->at("disk_wait").measured(),
                  .stops = {.seconds = pressure->at("stopped_s").number(),
                            .longest = pressure->at("longest_stop_s").number()}};
  return use;
}

Json to_object(const LinkReport& link) {
  Json object;
  object["to"] = link.to;
  object["kind"] = link.kind;
  object["encrypted"] = link.encrypted;
  object["round_trip_us"] = to_value(link.round_trip_us);
  object["bytes_per_step"] = {{"sent", to_value(link.step_sent)},
                              {"received", to_value(link.step_received)}};
  object["bytes_per_s"] = {{"sent", to_value(link.sent)}, {"received", to_value(link.received)}};
  if (link.most) object["bytes_per_s"]["most"] = *link.most;
  return object;
}

LinkReport to_link(const JsonPlace& object) {
  LinkReport link;
  link.to = object.at("to").text();
  link.kind = object.at("kind").text();
  link.round_trip_us = object.at("round_trip_us").measured();
  const JsonPlace step = object.at("bytes_per_step"), rate = object.at("bytes_per_s");
  link.step_sent = step.at("sent").measured();
  link.step_received = step.at("received").measured();
  link.sent = rate.at("sent").measured();
  link.received = rate.at("received").measured();
  if (const auto most = rate.find("most")) link.most = most->number();
  if (const auto encrypted = object.find("encrypted")) link.encrypted = encrypted->is_true();
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

KernelReport to_kernel(const JsonPlace& object) {
  return {.op = object.at("op").text(),
          .per_step = object.at("per_step").number(),
          .ms = object.at("ms").number(),
          .share = object.at("share").number()};
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

// What may be missing is missing in reports of earlier versions.
TaskReport task_from_json(const JsonPlace& object) {
  TaskReport task;
  task.task = object.at("task").text();
  task.steps = object.at("steps").whole_number();
  task.seconds = object.at("seconds").measured();
  for (const auto& [name, part] : object.at("share").members()) {
    task.share.emplace_back(name, part.number());
  }
  if (const auto use = object.find("use")) task.use = to_use(*use);
  if (const auto kept = object.find("kept")) {
    task.kept = {.bytes = kept->at("bytes").number(),
                 .largest = kept->at("largest").text(),
                 .largest_bytes = kept->at("largest_bytes").number()};
  }
  if (task.is_ps()) return task;
  if (const auto links = object.find("links")) {
    for (const JsonPlace& link : links->items()) task.links.push_back(to_link(link));
  }
  if (const auto input = object.find("input")) task.input = input_from_json(*input);
  if (const auto kernels = object.find("kernels")) {
    for (const JsonPlace& kernel : kernels->items()) task.kernels.push_back(to_kernel(kernel));
  }
  task.steps_per_s = object.at("steps_per_s").measured();
  task.examples_per_s = object.at("examples_per_s").measured();
  task.unit = object.at("unit").text();
  const JsonPlace step_ms = object.at("step_ms");
  task.step_ms_p50 = step_ms.at("p50").measured();
  task.step_ms_p99 = step_ms.at("p99").measured();
  if (const auto most = step_ms.find("max")) task.step_ms_max = most->number();
  task.hidden_ms = object.at("hidden_ms").measured();
  if (const auto bytes = object.find("network_bytes_per_step")) {
    task.step_sent = bytes->at("sent").measured();
    task.step_received = bytes->at("received").measured();
  }
  if (const auto staleness = object.find("staleness")) {
    task.staleness_mean = staleness->at("mean").measured();
    task.staleness_p95 = staleness->at("p95").measured();
  }
  if (const auto copies = object.find("copies_ms")) task.copies_ms = copies->number();
  if (const auto dropped = object.find("dropped")) task.dropped = dropped->whole_number();
  if (const auto skipped = object.find("skipped")) task.skipped = skipped->whole_number();
  return task;
}

}  // namespace paceline
