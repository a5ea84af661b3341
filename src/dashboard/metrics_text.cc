#include <fmt/format.h>

#include <iterator>

#include "dashboard/live_text.h"
#include "run/report/circumstances.h"

namespace paceline {
namespace {

using Labels = std::vector<std::pair<std::string, std::string>>;

std::string escaped(const std::string& value) {
  std::string text;
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    text += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return text;
}

// Metrics of one name stand together, below what they are.
class Metrics {
 public:
  void begin(const std::string& name, const char* type, const char* help) {
    name_ = "paceline_" + name;
    fmt::format_to(std::back_inserter(text_), "# HELP {0} {1}\n# TYPE {0} {2}\n", name_, help,
                   type);
  }
  void add(const Labels& labels, std::optional<double> value) {
    if (!value) return;
    text_ += name_;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      text_ += fmt::format("{}{}=\"{}\"", i == 0 ? '{' : ',', labels[i].first,
                           escaped(labels[i].second));
    }
    text_ += fmt::format("{} {}\n", labels.empty() ? "" : "}", *value);
  }
  std::string text() && { return std::move(text_); }

 private:
  std::string text_, name_;
};

// Calls add(labels, entry) for each task that has said something.
template <typename Add>
void each_task(const LiveRun& run, Add&& add) {
  for (const std::string& name : run.about().tasks) {
    const LiveRun::Task& task = run.tasks().at(name);
    if (task.progress) add(Labels{{"task", name}}, task, task.progress->report.tasks.front());
  }
}

void add_run(Metrics& metrics, const LiveRun& run, TimePoint now) {
  const Report report = run.report();
  metrics.begin("info", "gauge", "The run; the value is always 1.");
  metrics.add({{"model", report.model},
               {"strategy", report.strategy},
               {"version", circumstances().version},
               {"out", run.about().out}},
              1);
  metrics.begin("run_seconds", "gauge", "Seconds since the run began.");
  metrics.add({}, run.seconds(now));
  metrics.begin("global_step", "gauge", "The global step.");
  if (report.global_step) metrics.add({}, double(*report.global_step));
  metrics.begin("loss", "gauge", "The loss of the chief's last step.");
  metrics.add({}, report.last_loss);
  metrics.begin("steps_per_second", "gauge", "Steps a second of all workers now.");
  metrics.add({}, run.point(now).steps_per_s);
  metrics.begin("examples_per_second", "gauge", "Examples a second of all workers now.");
  metrics.add({}, run.examples_per_s());
  if (!report.expected) return;
  metrics.begin("expected_steps_per_second", "gauge",
                "The speed that was expected before the first step, with its 80% interval.");
  metrics.add({{"bound", "middle"}}, report.expected->steps_per_s);
  metrics.add({{"bound", "low"}}, report.expected->low);
  metrics.add({{"bound", "high"}}, report.expected->high);
}

void add_steps(Metrics& metrics, const LiveRun& run) {
  metrics.begin("task_steps_total", "counter", "Own steps of a worker; steps that a ps applied.");
  each_task(run, [&](const Labels& labels, const LiveRun::Task&, const TaskReport& task) {
    metrics.add(labels, double(task.steps));
  });
  metrics.begin("task_steps_per_second", "gauge", "Steps a second of a task now.");
  each_task(run, [&](const Labels& labels, const LiveRun::Task& task, const TaskReport&) {
    metrics.add(labels, LiveRun::recent(task).steps_per_s);
  });
  metrics.begin("task_seconds_total", "counter", "Seconds of timed steps by activity.");
  each_task(run, [&](const Labels& labels, const LiveRun::Task&, const TaskReport& task) {
    for (const auto& [name, share] : task.share) {
      Labels all = labels;
      all.emplace_back("activity", name);
      metrics.add(all, share * task.seconds.value_or(0));
    }
  });
  metrics.begin("task_step_seconds", "gauge", "The time of a timed step so far, by quantile.");
  each_task(run, [&](const Labels& labels, const LiveRun::Task&, const TaskReport& task) {
    for (const auto& [quantile, ms] :
         {std::pair("0.5", task.step_ms_p50), {"0.99", task.step_ms_p99}}) {
      Labels all = labels;
      all.emplace_back("quantile", quantile);
      if (ms) metrics.add(all, *ms * 1e-3);
    }
  });
  metrics.begin("task_staleness", "gauge", "Mean staleness of a worker's contributions now.");
  each_task(run, [&](const Labels& labels, const LiveRun::Task& task, const TaskReport&) {
    metrics.add(labels, LiveRun::recent(task).staleness);
  });
}

void add_use(Metrics& metrics, const LiveRun& run, TimePoint now) {
  metrics.begin("task_heard_seconds", "gauge", "Seconds since a task was heard of.");
  each_task(run, [&](const Labels& labels, const LiveRun::Task& task, const TaskReport&) {
    metrics.add(labels, std::chrono::duration<double>(now - task.heard).count());
  });
  metrics.begin("task_cores", "gauge", "Cores that a task keeps busy, on average so far.");
  each_task(run, [&](const Labels& labels, const LiveRun::Task&, const TaskReport& task) {
    metrics.add(labels, task.use.cores);
  });
  metrics.begin("task_peak_memory_bytes", "gauge", "The largest resident memory of a task.");
  each_task(run, [&](const Labels& labels, const LiveRun::Task&, const TaskReport& task) {
    metrics.add(labels, task.use.peak_memory);
  });
  metrics.begin("link_bytes_total", "counter", "Bytes of frames over a link.");
  each_task(run, [&](const Labels& labels, const LiveRun::Task&, const TaskReport& task) {
    for (const LinkReport& link : task.links) {
      for (const auto& [direction, per_step] :
           {std::pair("sent", link.step_sent), {"received", link.step_received}}) {
        Labels all = labels;
        all.insert(all.end(), {{"to", link.to}, {"direction", direction}});
        if (per_step) metrics.add(all, *per_step * double(task.steps));
      }
    }
  });
}

}  // namespace

std::string metrics_text(const LiveRun& run, TimePoint now) {
  Metrics metrics;
  add_run(metrics, run, now);
  add_steps(metrics, run);
  add_use(metrics, run, now);
  return std::move(metrics).text();
}

}  // namespace paceline
