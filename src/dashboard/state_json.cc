#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "dashboard/live_text.h"
#include "run/report/circumstances.h"
#include "run/report/report_json.h"

namespace paceline {
namespace {

using Json = nlohmann::ordered_json;
using Shares = std::vector<std::pair<std::string, double>>;

// Six digits are more than a picture shows.
Json short_number(std::optional<double> number) {
  if (!number || !std::isfinite(*number)) return nullptr;
  return std::strtod(fmt::format("{:.6g}", *number).c_str(), nullptr);
}

Json shares_to_json(const Shares& shares) {
  Json object = Json::object();
  for (const auto& [name, part] : shares) object[name] = short_number(part);
  return object;
}

Json seconds_since(TimePoint now, TimePoint then) {
  return short_number(std::chrono::duration<double>(now - then).count());
}

// `entry` is what the task's report says.
Json task_to_json(Json entry, const LiveRun::Task& task, TimePoint now) {
  Json object = std::move(entry);
  object["heard_s"] = task.progress ? seconds_since(now, task.heard) : Json(nullptr);
  object["still_s"] = task.progress ? seconds_since(now, task.moved) : Json(nullptr);
  const RecentTask recent = LiveRun::recent(task);
  object["recent"] = {
      {"steps_per_s", short_number(recent.steps_per_s)},
      {"examples_per_s", short_number(recent.examples_per_s)},
      {"share", shares_to_json(recent.share)},
      {"staleness", short_number(recent.staleness)},
      {"bytes_per_s",
       {{"sent", short_number(recent.sent)}, {"received", short_number(recent.received)}}}};
  object["lines"] = task.progress ? Json(task.progress->lines) : Json::array();
  return object;
}

Json series(const std::vector<RunPoint>& points, std::optional<double> RunPoint::*value) {
  Json list = Json::array();
  for (const RunPoint& point : points) list.push_back(short_number(point.*value));
  return list;
}

// By activity; a point at which none is known has null.
Json share_series(const std::vector<RunPoint>& points, Shares RunPoint::*shares) {
  Json object = Json::object();
  for (const RunPoint& point : points) {
    for (const auto& [name, part] : point.*shares) object[name] = Json::array();
  }
  for (const RunPoint& point : points) {
    for (const auto& [name, list] : object.items()) {
      const auto found =
          std::ranges::find((point.*shares), name, [](const auto& each) { return each.first; });
      list.push_back(found == (point.*shares).end() ? Json(nullptr) : short_number(found->second));
    }
  }
  return object;
}

// By tag; a point at which a number is not known has null.
Json number_series(const std::vector<RunPoint>& points) {
  Json object = Json::object();
  for (const RunPoint& point : points) {
    for (const auto& [tag, value] : point.numbers) object[tag] = Json::array();
  }
  for (const auto& [tag, list] : object.items()) {
    for (const RunPoint& point : points) {
      const auto found = point.numbers.find(tag);
      list.push_back(found == point.numbers.end() ? Json(nullptr) : short_number(found->second));
    }
  }
  return object;
}

Json history_to_json(const std::vector<RunPoint>& points) {
  Json seconds = Json::array();
  for (const RunPoint& point : points) seconds.push_back(short_number(point.seconds));
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

}  // namespace

namespace {

Json state_of(const LiveRun& run, TimePoint now) {
  const Report told = run.report();
  Json report = report_to_value(told);
  const Circumstances here = circumstances();
  const RunPoint point = run.point(now);
  Json state;
  state["state"] = told.steps() > 0 ? "training" : "starting";
  state["seconds"] = short_number(run.seconds(now));
  state["run"] = {{"model", report.at("model")},
                  {"strategy", report.at("strategy")},
                  {"precision", report.at("precision")},
                  {"version", here.version},
                  {"host", here.host},
                  {"started", here.started},
                  {"command", here.command},
                  {"out", run.about().out}};
  state["goal"] = {{"global_step", run.about().steps ? Json(*run.about().steps) : Json(nullptr)},
                   {"seconds", short_number(run.about().seconds)}};
  state["global_step"] = report.at("global_step");
  state["loss"] = report.at("loss");
  state["steps_per_s"] = short_number(point.steps_per_s);
  state["mean_steps_per_s"] = report.at("total").at("steps_per_s");
  state["examples_per_s"] = short_number(run.examples_per_s());
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
    state["tasks"].push_back(task_to_json(entry->second, run.tasks().at(name), now));
  }
  state["history"] = history_to_json(run.history());
  return state;
}

std::string text_of(const Json& state) {
  return state.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// A run whose tasks have all said at its end what its report says.
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
  state["seconds"] = short_number(seconds);
  state["run"]["started"] = report.circumstances.started;
  state["run"]["host"] = report.circumstances.host;
  state["run"]["command"] = report.circumstances.command;
  state["run"]["version"] = report.circumstances.version;
  state["steps_per_s"] = short_number(report.steps_per_s());
  for (std::size_t i = 0; i < report.tasks.size(); ++i) {
    auto& recent = state["tasks"][i]["recent"];
    recent["steps_per_s"] = short_number(report.tasks[i].steps_per_s);
    recent["staleness"] = short_number(report.tasks[i].staleness_mean);
  }
  return text_of(state);
}

}  // namespace paceline
