#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "dashboard/live_text.h"
#include "run/report/circumstances.h"
#include "run/report/record_json.h"

namespace paceline {
namespace {

using Json = nlohmann::ordered_json;
using Shares = std::vector<std::pair<std::string, double>>;

Json series(const std::vector<RunPoint>& points, std::optional<double> RunPoint::*value) {
  Json list = Json::array();
  for (const RunPoint& point : points) list.push_back(six_digits(point.*value));
  return list;
}

// Returns a series for each activity, with null for points at which its share is not known.
Json share_series(const std::vector<RunPoint>& points, Shares RunPoint::*shares) {
  Json object = Json::object();
  for (const RunPoint& point : points) {
    for (const auto& [name, part] : point.*shares) object[name] = Json::array();
  }
  for (const RunPoint& point : points) {
    for (const auto& [name, list] : object.items()) {
      const auto found =
          std::ranges::find((point.*shares), name, [](const auto& each) { return each.first; });
      list.push_back(found == (point.*shares).end() ? Json(nullptr) : six_digits(found->second));
    }
  }
  return object;
}

// Returns a series for each tag, with null for points at which its number is not known.
Json number_series(const std::vector<RunPoint>& points) {
  Json object = Json::object();
  for (const RunPoint& point : points) {
    for (const auto& [tag, value] : point.numbers) object[tag] = Json::array();
  }
  for (const auto& [tag, list] : object.items()) {
    for (const RunPoint& point : points) {
      const auto found = point.numbers.find(tag);
      list.push_back(found == point.numbers.end() ? Json(nullptr) : six_digits(found->second));
    }
  }
  return object;
}

Json history_to_json(const std::vector<RunPoint>& points) {
  Json seconds = Json::array();
  for (const RunPoint& point : points) seconds.push_back(six_digits(point.seconds));
  return {{"seconds", seconds},
          {"steps_per_s", series(points, &RunPoint::steps_per_s)},
          {"loss", series(points, &RunPoint::loss)},
          {"staleness", series(points, &RunPoint::staleness)},
          {"sent", series(points, &RunPoint::sent)},
          {"received", series(points, &RunPoint::received)},
          {"numbers", number_series(points)},
          {"worker_share", share_series(points, &RunPoint::worker_share)},
          {"ps_share", share_series(points, &RunPoint::ps_share)}};
}

Json state_of(const LiveRun& run, TimePoint now) {
  const Report told = run.report();
  Json report = to_json_value(told);
  const Circumstances here = circumstances();
  const RunPoint point = run.point(now);
  Json state;
  state["state"] = told.steps() > 0 ? "training" : "starting";
  state["seconds"] = six_digits(run.seconds(now));
  state["run"] = {{"model", report.at("model")},
                  {"strategy", report.at("strategy")},
                  {"precision", report.at("precision")},
                  {"version", here.version},
                  {"host", here.host},
                  {"started", here.started},
                  {"command", here.command},
                  {"out", run.about().out}};
  state["goal"] = {{"global_step", run.about().steps ? Json(*run.about().steps) : Json(nullptr)},
                   {"seconds", six_digits(run.about().seconds)}};
  state["global_step"] = report.at("global_step");
  state["loss"] = report.at("loss");
  state["steps_per_s"] = six_digits(point.steps_per_s);
  state["mean_steps_per_s"] = report.at("total").at("steps_per_s");
  state["examples_per_s"] = six_digits(run.examples_per_s());
  state["expected"] = report.contains("expected") ? report.at("expected") : Json(nullptr);
  state["cause"] = run.cause(now);
  state["tasks"] = Json::array();
  std::map<std::string, Json> entries;
  for (Json& entry : report.at("tasks")) {
    std::string name = entry.at("task");
    entries.emplace(std::move(name), std::move(entry));
  }
  for (const std::string& name : run.about().tasks) {
    const auto [entry, is_new] = entries.try_emplace(name, Json{{"task", name}});
    entry->second.update(to_json_value(LiveRun::live(run.tasks().at(name), now), Digits::kSix));
    state["tasks"].push_back(std::move(entry->second));
  }
  state["history"] = history_to_json(run.history());
  return state;
}

std::string text_of(const Json& state) {
  return state.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Returns a run in which each task has reported, at its end, what the report says of it.
LiveRun run_of(const Report& report) {
  RunAbout about;
  for (const TaskReport& task : report.tasks) about.tasks.push_back(task.task);
  LiveRun run(std::move(about), TimePoint());
  Report common = report;
  common.tasks.clear();
  for (const TaskReport& task : report.tasks) {
    TaskProgress progress;
    progress.report = common;
    progress.report.tasks = {task};
    run.heard(task.task, std::move(progress), TimePoint());
  }
  return run;
}

}  // namespace

std::string state_json(const LiveRun& run, TimePoint now) { return text_of(state_of(run, now)); }

std::string state_json(const Report& report) {
  Json state = state_of(run_of(report), TimePoint());
  double seconds = 0;
  for (const TaskReport& task : report.tasks) seconds = std::max(seconds, task.seconds.value_or(0));
  state["state"] = report.error.empty() ? "ended" : "ended: " + report.error;
  state["seconds"] = six_digits(seconds);
  state["run"]["started"] = report.circumstances.started;
  state["run"]["host"] = report.circumstances.host;
  state["run"]["command"] = report.circumstances.command;
  state["run"]["version"] = report.circumstances.version;
  state["steps_per_s"] = six_digits(report.steps_per_s());
  for (std::size_t i = 0; i < report.tasks.size(); ++i) {
    auto& recent = state["tasks"][i]["recent"];
    recent["steps_per_s"] = six_digits(report.tasks[i].steps_per_s);
    recent["staleness"] = six_digits(report.tasks[i].staleness_mean);
  }
  return text_of(state);
}

}  // namespace paceline
