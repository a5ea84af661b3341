#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "paceline/error.h"
#include "trace/task_timeline.h"
#include "trace/timeline_lines.h"

namespace paceline {
namespace {

using Json = nlohmann::ordered_json;

// The microseconds in a file have three decimals.
std::int64_t nanoseconds_in(const Json& microseconds) {
  return std::llround(microseconds.get<double>() * 1e3);
}

class TaskTimelineReader {
 public:
  void read(std::string_view line) {
    const Json event = Json::parse(line);
    if (event.at("ph") == "X") return read_span(event);
    const std::string name = event.at("name");
    const Json& arguments = event.at("args");
    if (name == "process_name") read_process(event, arguments);
    if (name == "clock") read_clock(arguments);
    if (name == "thread_name") {
      all_.threads[thread(event.at("tid"))].name = arguments.at("name");
    }
  }
  TaskTimeline take() {
    if (all_.task.empty() || !has_clock_) throw std::invalid_argument("it names no task");
    return std::move(all_);
  }

 private:
  void read_process(const Json& event, const Json& arguments) {
    if (!all_.task.empty()) throw std::invalid_argument("it has several tasks");
    all_.task = arguments.at("name");
    all_.process = event.at("pid");
  }
  void read_clock(const Json& arguments) {
    has_clock_ = true;
    all_.machine = arguments.at("machine");
    all_.clock = arguments.at("clock");
    all_.dropped = arguments.at("dropped");
    for (const auto& [task, samples] : arguments.at("round_trips").items()) {
      for (const Json& sample : samples) {
        all_.clock_samples[task].push_back({TimePoint(Duration(sample.at(0).get<std::int64_t>())),
                                            Duration(sample.at(1).get<std::int64_t>()),
                                            Duration(sample.at(2).get<std::int64_t>())});
      }
    }
  }
  void read_span(const Json& event) {
    const Json& arguments = event.at("args");
    TimelineSpan span;
    span.begin = nanoseconds_in(event.at("ts"));
    span.end = span.begin + nanoseconds_in(event.at("dur"));
    span.thread = thread(event.at("tid"));
    TimelineLabel label{event.at("name"), event.at("cat"), {}};
    for (const auto& [name, value] : arguments.items()) {
      if (value.is_string()) label.arguments.emplace_back(name, value.get<std::string>());
    }
    span.label = this->label(std::move(label));
    span.step = arguments.at("step");
    span.bytes = arguments.value("bytes", std::int64_t{-1});
    if (const auto frame = arguments.find("frame"); frame != arguments.end()) {
      span.frame = {frame->at(0), frame->at(1), frame->at(2)};
    }
    all_.spans.push_back(span);
  }
  std::size_t thread(pid_t id) {
    const auto [known, is_new] = threads_.emplace(id, all_.threads.size());
    if (is_new) all_.threads.push_back({id, ""});
    return known->second;
  }
  std::size_t label(TimelineLabel label) {
    std::string key = label.name + '\n' + label.category;
    for (const auto& [name, value] : label.arguments) {
      key.append("\n").append(name).append("\n").append(value);
    }
    const auto [known, is_new] = labels_.emplace(std::move(key), all_.labels.size());
    if (is_new) all_.labels.push_back(std::move(label));
    return known->second;
  }

  TaskTimeline all_;
  bool has_clock_ = false;
  std::map<pid_t, std::size_t> threads_;
  std::map<std::string, std::size_t> labels_;
};

}  // namespace

TaskTimeline read_task_timeline(const std::string& path) {
  TaskTimelineReader reader;
  int number = 1;
  std::string why;
  try {
    for_lines_of_timeline(path, [&](std::string_view line) {
      ++number;
      reader.read(line);
    });
    return reader.take();
  } catch (const nlohmann::json::exception&) {
    why = "line " + std::to_string(number) + " makes no sense";
  } catch (const std::invalid_argument& error) {
    why = error.what();
  }
  throw Error(ErrorCode::kDataLoss, path + " is no timeline of one task: " + why);
}

}  // namespace paceline
