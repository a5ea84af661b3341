#include "trace/task_timeline.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <unordered_map>

#include "base/text_file.h"
#include "trace/timeline_lines.h"

namespace paceline {
namespace {

// Returns an id that changes whenever the machine is started.
std::string machine_of_this_process() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

// Returns the id of this process's time namespace, since such a namespace shifts the clock.
std::string clock_of_this_process() {
  std::error_code none;
  return std::filesystem::read_symlink("/proc/self/ns/time", none).string();
}

std::int64_t nanoseconds_of(TimePoint time) { return time.time_since_epoch().count(); }

// Returns the name that a thread was given. For a thread without one, returns "link" if the event
// is a frame's, and an empty text otherwise.
std::string name_of_thread(const Timeline& timeline, const Timeline::Event& event) {
  std::string name = timeline.name_of_thread(event.thread);
  if (name.empty() && event.label->category == "frame") return "link";
  return name;
}

// Collects the threads and labels of a task's spans in the order in which they appear.
class TaskTables {
 public:
  TaskTables(TaskTimeline& to, const Timeline& from) : to_(to), from_(from) {}

  std::size_t thread(const Timeline::Event& event) {
    const auto [known, is_new] = threads_.emplace(event.thread, to_.threads.size());
    if (is_new) to_.threads.push_back({event.thread, ""});
    std::string& name = to_.threads[known->second].name;
    if (name.empty()) name = name_of_thread(from_, event);
    return known->second;
  }
  std::size_t label(const TimelineLabel* label) {
    const auto [known, is_new] = labels_.emplace(label, to_.labels.size());
    if (is_new) {
      to_.labels.push_back(*label);
      for (auto& [name, value] : to_.labels.back().arguments) {
        if (name == "peer") value = from_.task_of(value);
      }
    }
    return known->second;
  }

 private:
  TaskTimeline& to_;
  const Timeline& from_;
  std::unordered_map<pid_t, std::size_t> threads_;
  std::unordered_map<const TimelineLabel*, std::size_t> labels_;
};

TaskTimeline task_timeline(const Timeline& timeline, const std::string& task) {
  TaskTimeline all;
  all.task = task;
  all.process = getpid();
  all.dropped = timeline.dropped();
  all.machine = machine_of_this_process();
  all.clock = clock_of_this_process();
  for (const auto& [peer, samples] : timeline.clock_samples()) {
    all.clock_samples[peer].assign(samples.all().begin(), samples.all().end());
  }
  TaskTables tables(all, timeline);
  for (const Timeline::Event& event : timeline.events()) {
    all.spans.push_back({.begin = nanoseconds_of(event.begin),
                         .end = nanoseconds_of(event.end),
                         .label = tables.label(event.label),
                         .thread = tables.thread(event),
                         .step = event.step,
                         .bytes = event.bytes,
                         .frame = event.frame});
  }
  for (TaskTimeline::Thread& thread : all.threads) {
    if (thread.name.empty()) thread.name = "pool";
  }
  std::ranges::sort(all.spans, {},
                    [](const TimelineSpan& span) { return std::pair(span.begin, -span.end); });
  return all;
}

std::string clock_arguments(const TaskTimeline& task) {
  std::vector<std::string> peers;
  for (const auto& [peer, samples] : task.clock_samples) {
    std::vector<std::string> texts;
    texts.reserve(samples.size());
    for (const ClockSample& sample : samples) {
      texts.push_back(fmt::format("[{}, {}, {}]", nanoseconds_of(sample.at), sample.offset.count(),
                                  sample.half.count()));
    }
    peers.push_back(fmt::format("{}: [{}]", quoted_json(peer), fmt::join(texts, ", ")));
  }
  return fmt::format(R"("machine": {}, "clock": {}, "dropped": {}, "round_trips": {{{}}})",
                     quoted_json(task.machine), quoted_json(task.clock), task.dropped,
                     fmt::join(peers, ", "));
}

std::vector<std::string> lines_of(const TaskTimeline& task) {
  std::vector<std::string> lines;
  const TimelinePlace process{.process = task.process};
  lines.push_back(metadata_line("process_name", process, R"("name": )" + quoted_json(task.task)));
  lines.push_back(metadata_line("clock", process, clock_arguments(task)));
  if (task.dropped > 0) {
    lines.push_back(
        metadata_line("process_labels", process,
                      fmt::format(R"("labels": "{} more events found no place")", task.dropped)));
  }
  for (const TaskTimeline::Thread& thread : task.threads) {
    lines.push_back(metadata_line("thread_name", {task.process, thread.id},
                                  R"("name": )" + quoted_json(thread.name)));
  }
  for (const TimelineSpan& span : task.spans) {
    const TimelineLabel& label = task.label_of(span);
    std::string arguments = arguments_of(task, span);
    if (span.frame.piece >= 0) {
      arguments += fmt::format(R"(, "frame": [{}, {}, {}])", span.frame.piece, span.frame.offset,
                               span.frame.step);
    }
    lines.push_back(span_line(label.name, label.category,
                              {task.process, task.threads[span.thread].id}, span.begin, span.end,
                              arguments));
  }
  return lines;
}

}  // namespace

std::string_view argument_of(const TimelineLabel& label, std::string_view name) {
  for (const auto& [known, value] : label.arguments) {
    if (known == name) return value;
  }
  return "";
}

std::string arguments_of(const TaskTimeline& task, const TimelineSpan& span) {
  std::string arguments = fmt::format(R"("step": {})", span.step);
  for (const auto& [name, value] : task.label_of(span).arguments) {
    arguments += fmt::format(", {}: {}", quoted_json(name), quoted_json(value));
  }
  if (span.bytes >= 0) arguments += fmt::format(R"(, "bytes": {})", span.bytes);
  return arguments;
}

void write_timeline(const std::string& path, const Timeline& timeline, const std::string& task) {
  const std::string lines =
      fmt::format("{}", fmt::join(lines_of(task_timeline(timeline, task)), ",\n"));
  write_text_file("the timeline", path, text_of_timeline(lines));
}

}  // namespace paceline
