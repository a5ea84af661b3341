#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <type_traits>

#include "dashboard/live_text.h"
#include "run/report/circumstances.h"
#include "run/report/report_fields.h"

namespace paceline {
namespace {

using Labels = std::vector<std::pair<std::string_view, std::string>>;

std::string escaped(const std::string& value) {
  std::string text;
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    text += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return text;
}

/// Metrics of one name stand together, below the lines with their help and type.
class Metrics {
 public:
  /// Begins the metrics of this name. `shown_at` is the place of the name among the others.
  void begin(int shown_at, const FieldMetric& metric) {
    if (metric.name.empty() || find(metric.name) != all_.end()) return;
    all_.push_back({shown_at, metric.name,
                    fmt::format("# HELP paceline_{0} {1}\n# TYPE paceline_{0} {2}\n", metric.name,
                                metric.help, metric.counter ? "counter" : "gauge")});
  }
  void add(std::string_view name, const Labels& labels, std::optional<double> value) {
    if (!value) return;
    std::string& text = find(name)->text;
    fmt::format_to(std::back_inserter(text), "paceline_{}", name);
    for (std::size_t i = 0; i < labels.size(); ++i) {
      text += fmt::format("{}{}=\"{}\"", i == 0 ? '{' : ',', labels[i].first,
                          escaped(labels[i].second));
    }
    text += fmt::format("{} {}\n", labels.empty() ? "" : "}", *value);
  }
  /// Adds one metric, or none if the value is not known.
  void add_one(int shown_at, const FieldMetric& metric, const Labels& labels,
               std::optional<double> value) {
    begin(shown_at, metric);
    add(metric.name, labels, value);
  }
  std::string text() && {
    std::ranges::stable_sort(all_, {}, &Family::shown_at);
    std::string text;
    for (const Family& each : all_) text += each.text;
    return text;
  }

 private:
  struct Family {
    int shown_at;
    std::string_view name;
    std::string text;
  };
  std::vector<Family>::iterator find(std::string_view name) {
    return std::ranges::find(all_, name, &Family::name);
  }

  std::vector<Family> all_;
};

/// Adds the metrics of a record's fields, and of the records in it.
class FieldMetrics {
 public:
  explicit FieldMetrics(Metrics& metrics) : metrics_(metrics) {}

  template <typename Record>
  void add(const Record& record, const Labels& labels) {
    if constexpr (std::is_same_v<Record, TaskReport>) task_ = &record;
    begin_all<Record>();
    for (const ReportField<Record>& field : report_fields<Record>()) {
      visit_field(field, record,
                  [&](const auto& place) { add_value(field.metric, labels, place.of(record)); });
    }
  }
  /// Begins the metrics of empty lists, so that their names appear, too.
  template <typename Record>
  void begin_all() {
    for (const ReportField<Record>& field : report_fields<Record>()) {
      metrics_.begin(field.shown_at, field.metric);
      std::visit([&](const auto& place) { begin_list(place); }, field.value);
    }
  }

 private:
  using Value = FieldMetric::Value;

  template <typename Record, typename T>
  void begin_list(const FieldPlace<Record, std::vector<T>>&) {
    if constexpr (ReportRecord<T>) begin_all<T>();
  }
  template <typename T>
  void begin_list(const T&) {}
  void add_number(const FieldMetric& metric, Labels labels, double number,
                  std::string_view name = {}) {
    if (metric.name.empty()) return;
    const std::string_view label = name.empty() ? metric.label.second : name;
    if (!metric.label.first.empty()) labels.emplace_back(metric.label.first, label);
    double times = metric.times;
    if (metric.value == Value::kTimesSteps) times *= double(task_->steps);
    if (metric.value == Value::kTimesSeconds) times *= task_->seconds.value_or(0);
    metrics_.add(metric.name, labels, number * times);
  }
  void add_value(const FieldMetric& metric, const Labels& labels,
                 const std::vector<std::pair<std::string, double>>& numbers) {
    for (const auto& [name, number] : numbers) add_number(metric, labels, number, name);
  }
  template <typename T>
  void add_value(const FieldMetric& metric, const Labels& labels, const std::optional<T>& known) {
    if (known) add_value(metric, labels, *known);
  }
  // In a list, the first field of a record distinguishes it from the others.
  template <typename Record>
  void add_value(const FieldMetric&, const Labels& labels, const std::vector<Record>& records) {
    if constexpr (ReportRecord<Record>) {
      const ReportField<Record>& first = report_fields<Record>().front();
      for (const Record& each : records) {
        Labels of_this = labels;
        of_this.emplace_back(first.name,
                             std::get<FieldPlace<Record, std::string>>(first.value).of(each));
        add(each, of_this);
      }
    }
  }
  template <typename T>
  void add_value(const FieldMetric& metric, const Labels& labels, const T& value) {
    if constexpr (std::is_arithmetic_v<T>) {
      add_number(metric, labels, double(value));
    } else if constexpr (ReportRecord<T>) {
      add(value, labels);
    }
  }

  Metrics& metrics_;
  const TaskReport* task_ = nullptr;
};

// Returns all tasks as one report, in the order in which the run lists them.
Report ordered_report(const LiveRun& run) {
  Report report = run.report();
  std::map<std::string_view, std::size_t> places;
  for (const std::string& name : run.about().tasks) places.emplace(name, places.size());
  std::ranges::stable_sort(report.tasks, {},
                           [&](const TaskReport& task) { return places.find(task.task)->second; });
  return report;
}

void add_run(Metrics& metrics, const LiveRun& run, const Report& report, TimePoint now) {
  metrics.add_one(0, {.name = "info", .help = "The run; the value is always 1."},
                  {{"model", report.model},
                   {"strategy", report.strategy},
                   {"version", circumstances().version},
                   {"out", run.about().out}},
                  1);
  metrics.add_one(1, {.name = "run_seconds", .help = "Seconds since the run began."}, {},
                  run.seconds(now));
  metrics.add_one(4, {.name = "steps_per_second", .help = "Steps a second of all workers now."}, {},
                  run.point(now).steps_per_s);
  metrics.add_one(5,
                  {.name = "examples_per_second", .help = "Examples a second of all workers now."},
                  {}, run.examples_per_s());
}

}  // namespace

std::string metrics_text(const LiveRun& run, TimePoint now) {
  Metrics metrics;
  const Report report = ordered_report(run);
  add_run(metrics, run, report, now);
  FieldMetrics fields(metrics);
  fields.begin_all<Report>();
  fields.begin_all<LiveTask>();
  fields.add(report, {});
  for (const std::string& name : run.about().tasks) {
    const LiveRun::Task& task = run.tasks().at(name);
    if (task.progress) fields.add(LiveRun::live(task, now), {{"task", name}});
  }
  return std::move(metrics).text();
}

}  // namespace paceline
