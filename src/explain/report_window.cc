#include "explain/report_window.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace paceline {
namespace {

/// Averages over the first seconds of a time, and over all of it, make one over the rest.
class Rest {
 public:
  Rest(double before, double now) : before_(before), now_(now) {}

  bool is_empty() const { return now_ <= before_; }
  double seconds() const { return now_ - before_; }
  double of(double before, double now) const {
    return std::max(0.0, (now * now_ - before * before_) / seconds());
  }
  std::optional<double> of(std::optional<double> before, std::optional<double> now) const {
    if (!before || !now) return now;
    return of(*before, *now);
  }

 private:
  const double before_, now_;
};

// A task that has said nothing in this time counts for nothing in it.
void take_use(TaskUse& use, const TaskUse& before) {
  const Rest rest(before.seconds, use.seconds);
  if (rest.is_empty()) {
    use = {};
    return;
  }
  use.cores = rest.of(before.cores, use.cores);
  for (const auto rate :
       {&TaskUse::sent, &TaskUse::received, &TaskUse::disk_read, &TaskUse::disk_written}) {
    use.*rate = rest.of(before.*rate, use.*rate);
  }
  Pressure& pressure = use.pressure;
  for (const auto part : {&Pressure::queued, &Pressure::waited, &Pressure::machine_cores,
                          &Pressure::major_faults, &Pressure::memory_wait, &Pressure::disk_wait}) {
    pressure.*part = rest.of(before.pressure.*part, pressure.*part);
  }
  pressure.stops.seconds -= before.pressure.stops.seconds;
  use.seconds = rest.seconds();
}

void take_links(TaskReport& task, const TaskReport& before, const Rest& rest) {
  if (rest.is_empty()) return;
  for (LinkReport& link : task.links) {
    const auto old = std::ranges::find(before.links, link.to, &LinkReport::to);
    if (old == before.links.end()) continue;
    link.sent = rest.of(old->sent, link.sent);
    link.received = rest.of(old->received, link.received);
  }
}

void take_input(InputReport& input, const InputReport& before) {
  for (StageReport& stage : input.stages) {
    const auto old = std::ranges::find(before.stages, stage.name, &StageReport::name);
    if (old == before.stages.end()) continue;
    stage.records -= old->records;
    stage.seconds -= old->seconds;
  }
  input.records -= before.records;
  input.batches -= before.batches;
  input.bad -= before.bad;
  input.seconds -= before.seconds;
  input.waited -= before.waited;
}

TaskReport between(const TaskReport& before, TaskReport task) {
  take_links(task, before, Rest(before.use.seconds, task.use.seconds));
  take_use(task.use, before.use);
  if (task.input && before.input) take_input(*task.input, *before.input);
  const Rest rest(before.seconds.value_or(0), task.seconds.value_or(0));
  if (rest.is_empty()) return task;
  task.steps -= before.steps;
  task.seconds = rest.seconds();
  task.steps_per_s = rest.of(before.steps_per_s.value_or(0), task.steps_per_s);
  task.examples_per_s = rest.of(before.examples_per_s.value_or(0), task.examples_per_s);
  for (auto& [activity, share] : task.share) {
    const auto old =
        std::ranges::find(before.share, activity, &std::pair<std::string, double>::first);
    share = rest.of(old == before.share.end() ? 0 : old->second, share);
  }
  return task;
}

}  // namespace

Report report_between(const Report& before, const Report& now) {
  Report rest = now;
  for (const char* const sum : {"late_s", "waited_s"}) {
    const auto value = now.value("checkpoints", sum);
    if (value) {
      rest.set("checkpoints", sum, *value - before.value("checkpoints", sum).value_or(0));
    }
  }
  rest.tasks.clear();
  std::map<std::string_view, const TaskReport*> olds;
  for (const TaskReport& task : before.tasks) olds.emplace(task.task, &task);
  for (const TaskReport& task : now.tasks) {
    const auto old = olds.find(task.task);
    if (old != olds.end()) rest.tasks.push_back(between(*old->second, task));
  }
  return rest;
}

}  // namespace paceline
