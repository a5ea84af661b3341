#include "trace/timeline_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "base/text_file.h"

namespace paceline {
namespace {

// An event a line between these two, so that files are put together line by line.
constexpr const char* kTimelineHead = R"({"displayTimeUnit": "ms", "traceEvents": [)";
constexpr const char* kTimelineTail = "]}";

using Lines = std::vector<std::string>;

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string metadata(const char* name, pid_t thread, const std::string& value) {
  return fmt::format(R"({{"ph": "M", "name": "{}", "pid": {}, "tid": {}, "args": {{{}}}}})", name,
                     getpid(), thread, value);
}

double microseconds(Duration duration) { return double(duration.count()) * 1e-3; }

std::string line_of(const Timeline::Event& event) {
  std::string arguments = fmt::format(R"("step": {})", event.step);
  for (const auto& [name, value] : event.label->arguments) {
    arguments += fmt::format(", {}: {}", quoted(name), quoted(value));
  }
  if (event.bytes >= 0) arguments += fmt::format(R"(, "bytes": {})", event.bytes);
  return fmt::format(
      R"({{"ph": "X", "name": {}, "cat": {}, "pid": {}, "tid": {}, "ts": {:.3f}, "dur": {:.3f}, )"
      R"("args": {{{}}}}})",
      quoted(event.label->name), quoted(event.label->category), getpid(), event.thread,
      microseconds(event.begin.time_since_epoch()), microseconds(event.end - event.begin),
      arguments);
}

// Threads of a pool, or of a link, have no names of their own: by what they did.
std::map<pid_t, std::string> names_of_threads(const Timeline& timeline,
                                              std::span<const Timeline::Event> events) {
  std::map<pid_t, std::string> names;
  for (const Timeline::Event& event : events) {
    std::string& name = names[event.thread];
    if (name.empty()) name = timeline.name_of_thread(event.thread);
    if (event.label->category == "frame" && name.empty()) name = "link";
  }
  for (auto& [thread, name] : names) {
    if (name.empty()) name = "pool";
  }
  return names;
}

// Workers above ps tasks.
int rank_of_task(const std::string& task) {
  const std::size_t colon = task.find(':');
  const int index = colon == std::string::npos ? 0 : std::atoi(task.c_str() + colon + 1);
  return task.starts_with("ps") ? 100'000 + index : index;
}

Lines lines_of(const Timeline& timeline, const std::string& task) {
  std::vector<Timeline::Event> events = timeline.events();
  std::ranges::sort(events, {}, &Timeline::Event::begin);
  Lines lines;
  lines.push_back(metadata("process_name", 0, fmt::format(R"("name": {})", quoted(task))));
  lines.push_back(
      metadata("process_sort_index", 0, fmt::format(R"("sort_index": {})", rank_of_task(task))));
  if (timeline.dropped() > 0) {
    lines.push_back(
        metadata("process_labels", 0,
                 fmt::format(R"("labels": "{} more events found no place")", timeline.dropped())));
  }
  for (const auto& [thread, name] : names_of_threads(timeline, events)) {
    lines.push_back(metadata("thread_name", thread, fmt::format(R"("name": {})", quoted(name))));
  }
  for (const Timeline::Event& event : events) lines.push_back(line_of(event));
  return lines;
}

void write_lines(const std::string& path, const Lines& lines) {
  const std::string events = fmt::format("{}", fmt::join(lines, ",\n"));
  write_text_file(
      "the timeline", path,
      fmt::format("{}\n{}{}{}\n", kTimelineHead, events, lines.empty() ? "" : "\n", kTimelineTail));
}

// Empty unless it is a whole file of ours.
Lines read_lines(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Lines lines;
  std::string line;
  if (!std::getline(file, line) || line != kTimelineHead) return {};
  while (std::getline(file, line) && line != kTimelineTail) {
    if (line.ends_with(',')) line.pop_back();
    lines.push_back(std::move(line));
  }
  return line == kTimelineTail ? lines : Lines();
}

}  // namespace

void write_timeline(const std::string& path, const Timeline& timeline, const std::string& task) {
  write_lines(path, lines_of(timeline, task));
}

void merge_timelines(std::span<const std::string> paths, const std::string& path) {
  Lines all;
  for (const std::string& one : paths) {
    Lines lines = read_lines(one);
    std::ranges::move(lines, std::back_inserter(all));
  }
  write_lines(path, all);
}

}  // namespace paceline
