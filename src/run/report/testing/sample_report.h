// Reports of a healthy run, which tests change.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "run/report/report.h"

namespace paceline {

/// Returns the report of a worker that computes for nine tenths of its time and reaches ps:0 over
/// shared memory.
inline TaskReport worker_report(int index) {
  TaskReport task;
  task.task = "worker:" + std::to_string(index);
  task.steps = 210;
  task.seconds = 20;
  task.steps_per_s = 10;
  task.examples_per_s = 640;
  task.unit = "images";
  task.step_ms_p50 = 98;
  task.hidden_ms = 0;
  task.share = {{"input", 0.01}, {"compute", 0.9}, {"pull", 0.04}, {"push", 0.03},
                {"apply", 0},    {"wait", 0},      {"other", 0.02}};
  task.use.cores = 0.9;
  task.use.seconds = 20;
  task.use.pressure = {.queued = 0.02,
                       .waited = 0.02,
                       .machine_cores = 2.0,
                       .major_faults = 0,
                       .memory_wait = 0,
                       .disk_wait = 0};
  task.links.emplace_back();
  task.links[0].to = "ps:0";
  task.links[0].kind = "shm";
  return task;
}

inline TaskReport ps_report(int index) {
  TaskReport task;
  task.task = "ps:" + std::to_string(index);
  task.steps = 420;
  task.seconds = 20;
  task.share = {{"apply", 0.1}, {"queue", 0.02}, {"idle", 0.88}};
  task.use.cores = 0.1;
  task.use.seconds = 20;
  task.use.pressure = {.queued = 0.02, .machine_cores = 2.0};
  return task;
}

/// Returns a link over TCP that carries these bytes per second, of the 118.9 MB/s that it could
/// carry.
inline LinkReport tcp_link(const TaskReport& worker, double sent, double received) {
  return {.to = "ps:0",
          .kind = "tcp",
          .round_trip_us = 100,
          .step_sent = sent / *worker.steps_per_s,
          .step_received = received / *worker.steps_per_s,
          .sent = sent,
          .received = received,
          .most = 118.9e6};
}

/// Two workers and a ps, asynchronous.
inline Report sample_report(std::vector<TaskReport> tasks = {worker_report(0), worker_report(1),
                                                             ps_report(0)}) {
  Report run;
  run.model = "cifar10";
  run.strategy = "async";
  run.cores = 2;
  run.tasks = std::move(tasks);
  run.expected = {.steps_per_s = 20, .low = 19, .high = 21, .limit = "the devices"};
  return run;
}

/// Makes a worker slower, with the shares of time that follow if only `activity` took longer.
inline void slow_down(TaskReport& task, const std::string& activity, double more) {
  for (auto& [name, part] : task.share) part = (part + (name == activity ? more : 0)) / (1 + more);
  *task.steps_per_s /= 1 + more;
  *task.examples_per_s /= 1 + more;
}

}  // namespace paceline
