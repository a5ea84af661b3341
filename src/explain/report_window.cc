#include "explain/report_window.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "run/report/report_fields.h"

namespace paceline {
namespace {

/// Computes the average over the rest of a time from two averages: over its first seconds, and over
/// all of it.
class Rest {
 public:
  Rest(double before, double now) : before_(before), now_(now) {}

  bool is_empty() const { return now_ <= before_; }
  double mean(double before, double now) const {
    return std::max(0.0, (now * now_ - before * before_) / (now_ - before_));
  }

 private:
  const double before_, now_;
};

/// Computes the fields of a record over the time between two reports, each as its OverTime says.
class Between {
 public:
  Between(const TaskReport& before, const TaskReport& now)
      : steps_(before.seconds.value_or(0), now.seconds.value_or(0)),
        use_(before.use.seconds, now.use.seconds) {}

  template <typename Record>
  void take(Record& record, const Record& before) const {
    for (const ReportField<Record>& field : report_fields<Record>()) {
      visit_field(field, record, [&](const auto& place) {
        if constexpr (requires { place.in(record); }) {
          take(place.in(record), place.of(before), field.over_time);
        }
      });
    }
  }

 private:
  void take(double& now, double before, OverTime over) const {
    if (over == OverTime::kLast) return;
    const bool of_use = over == OverTime::kUseSum || over == OverTime::kUseMean;
    const bool mean = over == OverTime::kUseMean || over == OverTime::kStepMean;
    const Rest& rest = of_use ? use_ : steps_;
    if (over != OverTime::kSum && rest.is_empty()) return;
    now = mean ? rest.mean(before, now) : now - before;
  }
  void take(std::optional<double>& now, std::optional<double> before, OverTime over) const {
    if (now && before) take(*now, *before, over);
  }
  void take(std::int64_t& now, std::int64_t before, OverTime over) const {
    const bool timed = over == OverTime::kStepSum && !steps_.is_empty();
    if (over == OverTime::kSum || timed) now -= before;
  }
  void take(std::vector<std::pair<std::string, double>>& now,
            const std::vector<std::pair<std::string, double>>& before, OverTime over) const {
    for (auto& [name, number] : now) {
      const auto old = std::ranges::find(before, name, &std::pair<std::string, double>::first);
      take(number, old == before.end() ? 0 : old->second, over);
    }
  }
  void take(std::optional<InputReport>& now, const std::optional<InputReport>& before,
            OverTime) const {
    if (now && before) take(*now, *before);
  }
  void take(std::vector<LinkReport>& now, const std::vector<LinkReport>& before, OverTime) const {
    take_each(now, before, &LinkReport::to);
  }
  void take(std::vector<StageReport>& now, const std::vector<StageReport>& before, OverTime) const {
    take_each(now, before, &StageReport::name);
  }
  // Takes fields of other types as the later report has them.
  template <typename T>
  void take(T&, const T&, OverTime) const {}

  template <typename Record>
  void take_each(std::vector<Record>& now, const std::vector<Record>& before,
                 std::string Record::*name) const {
    for (Record& each : now) {
      const auto old = std::ranges::find(before, each.*name, name);
      if (old != before.end()) take(each, *old);
    }
  }

  const Rest steps_, use_;
};

TaskReport between(const TaskReport& before, TaskReport task) {
  const bool used = task.use.seconds > before.use.seconds;
  Between(before, TaskReport(task)).take(task, before);
  if (!used) task.use = {};  // the task reported no use in this time, so its use does not count
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
