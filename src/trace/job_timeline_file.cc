#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <vector>

#include "base/text_file.h"
#include "trace/job_timeline.h"
#include "trace/timeline_lines.h"

namespace paceline {
namespace {

// The amount of detail that a file shows.
struct TimelineDetail {
  bool arguments = true;
  // In nanoseconds: shorter spans are left out, except spans of steps and ends of arrows.
  std::int64_t shortest = 0;
  bool arrows = true;
};

// Returns the detail of each level; levels are tried one after the other until the file is small
// enough.
TimelineDetail detail_of_level(int level) {
  if (level == 0) return {};
  constexpr int kWithArrows = 8;
  return {.arguments = false,
          .shortest = level == 1 ? 0 : std::int64_t{1000} << std::min(level - 2, 50),
          .arrows = level <= kWithArrows};
}

class JobTimelineWriter {
 public:
  JobTimelineWriter(const JobTimeline& job, const TimelineDetail& detail, std::size_t most_bytes)
      : job_(job), detail_(detail), most_bytes_(most_bytes) {}

  // Returns false if the file would be too large.
  bool write() {
    start_ = std::numeric_limits<std::int64_t>::max();
    for (const TaskTimeline& task : job_.tasks) {
      for (const TimelineSpan& span : task.spans) start_ = std::min(start_, span.begin);
    }
    keep_ends_of_arrows();
    for (std::size_t i = 0; i < job_.tasks.size(); ++i) add_task(i);
    add_paths();
    if (detail_.arrows) add_arrows();
    return !is_full();
  }
  const std::string& lines() const { return lines_; }

 private:
  static int process_of(std::size_t task) { return int(task) + 2; }
  static constexpr int kPathProcess = 1;

  TimelinePlace place_of(std::size_t task, const TimelineSpan& span) const {
    return {process_of(task), int(span.thread) + 1};
  }
  // True if there are too many bytes. A new writer then tries with less detail.
  bool is_full() const { return lines_.size() > most_bytes_; }
  void add(const std::string& line) {
    if (!lines_.empty()) lines_ += ",\n";
    lines_ += line;
  }
  void keep_ends_of_arrows() {
    for (const TaskTimeline& task : job_.tasks) kept_.emplace_back(task.spans.size());
    if (!detail_.arrows) return;
    for (const TimelineArrow& arrow : job_.arrows) {
      for (const TimelineArrow::End& end : arrow.ends) kept_[end.place.task][end.place.span] = true;
    }
  }
  void name_process(int process, const std::string& name, int rank) {
    add(metadata_line("process_name", {process, 0}, R"("name": )" + quoted_json(name)));
    add(metadata_line("process_sort_index", {process, 0},
                      fmt::format(R"("sort_index": {})", rank)));
  }
  void name_thread(TimelinePlace place, const std::string& name) {
    add(metadata_line("thread_name", place, R"("name": )" + quoted_json(name)));
  }

  void add_task(std::size_t i) {
    const TaskTimeline& task = job_.tasks[i];
    name_process(process_of(i), task.task, process_of(i));
    const TaskClock& clock = job_.clocks[i];
    add(metadata_line("clock", {process_of(i), 0},
                      fmt::format(R"("known": {}, "ahead_us": {:.3f}, "uncertainty_us": {:.3f})",
                                  clock.is_known, -double(clock.line.offset.count()) * 1e-3,
                                  double(clock.line.uncertainty.count()) * 1e-3)));
    if (const std::string label = label_of(task); !label.empty()) {
      add(metadata_line("process_labels", {process_of(i), 0},
                        R"("labels": )" + quoted_json(label)));
    }
    for (std::size_t t = 0; t < task.threads.size(); ++t) {
      name_thread({process_of(i), int(t) + 1}, task.threads[t].name);
    }
    for (std::size_t k = 0; k < task.spans.size() && !is_full(); ++k) add_span(i, k);
  }
  std::string label_of(const TaskTimeline& task) const {
    std::string label;
    if (task.dropped > 0) label = fmt::format("{} more events found no place", task.dropped);
    if (detail_.shortest > 0) {
      label += fmt::format("{}without spans of less than {} \u00b5s", label.empty() ? "" : "; ",
                           detail_.shortest / 1000);
    }
    return label;
  }
  void add_span(std::size_t i, std::size_t k) {
    const TaskTimeline& task = job_.tasks[i];
    const TimelineSpan& span = task.spans[k];
    const TimelineLabel& label = task.label_of(span);
    if (span.end - span.begin < detail_.shortest && label.category != "step" && !kept_[i][k]) {
      return;
    }
    add(span_line(
        label.name, label.category, place_of(i, span), span.begin - start_, span.end - start_,
        detail_.arguments ? arguments_of(task, span) : fmt::format(R"("step": {})", span.step)));
  }
  void add_paths() {
    if (job_.steps.empty()) return;
    name_process(kPathProcess, "critical path", kPathProcess);
    std::map<std::string, int> rows;
    for (const JobTimeline::Step& step : job_.steps) {
      if (is_full()) return;
      const auto [row, is_new] = rows.emplace(step.task, int(rows.size()) + 1);
      const TimelinePlace place{kPathProcess, row->second};
      if (is_new) name_thread(place, "steps of " + step.task);
      for (const PathPart& part : step.path) {
        if (part.end - part.begin < detail_.shortest) continue;
        add(span_line(part.what, "path", place, part.begin - start_, part.end - start_, ""));
      }
    }
  }
  void add_arrows() {
    for (std::size_t i = 0; i < job_.arrows.size() && !is_full(); ++i) {
      const TimelineArrow& arrow = job_.arrows[i];
      for (std::size_t e = 0; e < arrow.ends.size(); ++e) {
        const auto& [place, at] = arrow.ends[e];
        const char phase = e == 0 ? 's' : e + 1 == arrow.ends.size() ? 'f' : 't';
        const TimelineSpan& span = job_.tasks[place.task].spans[place.span];
        add(arrow_line(phase, arrow.name, place_of(place.task, span), i + 1, at - start_));
      }
    }
  }

  const JobTimeline& job_;
  const TimelineDetail detail_;
  const std::size_t most_bytes_;
  std::int64_t start_ = 0;
  std::vector<std::vector<bool>> kept_;  // by task and span: ends of arrows
  std::string lines_;
};

}  // namespace

void write_job_timeline(const std::string& path, const JobTimeline& job, std::size_t most_bytes) {
  constexpr int kLastLevel = 40;  // steps alone, however many there are
  for (int level = 0;; ++level) {
    const bool last = level == kLastLevel;
    JobTimelineWriter writer(job, detail_of_level(level),
                             last ? std::numeric_limits<std::size_t>::max() : most_bytes);
    if (!writer.write()) continue;
    return write_text_file("the timeline", path, text_of_timeline(writer.lines()));
  }
}

}  // namespace paceline
