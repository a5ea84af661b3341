#include "summary/event_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "paceline/error.h"
#include "summary/event_reader.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

// Returns the event files in the order of their runs, which is that of their names, since these
// begin with the time.
std::vector<std::string> event_files(const fs::path& folder) {
  std::vector<std::string> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename();
    if (name.find("tfevents") != std::string::npos && entry.is_regular_file()) {
      files.push_back(entry.path());
    }
  }
  std::ranges::sort(files);
  return files;
}

void forget_from(TaskSummaries& task, std::int64_t step) {
  for (auto& [tag, points] : task.numbers) {
    std::erase_if(points, [&](const SummaryPoint& point) { return point.step >= step; });
  }
}

void read_file(TaskSummaries& task, const std::string& path) {
  EventReader reader(path);
  while (const auto event = reader.next()) {
    if (event->start) forget_from(task, event->step);
    for (const SummaryValue& value : event->values) {
      const float* number = std::get_if<float>(&value.value);
      if (number == nullptr) continue;
      task.numbers[value.tag].push_back({event->step, event->wall_time, *number});
    }
  }
}

void add_task(std::vector<TaskSummaries>& tasks, const fs::path& folder) {
  const std::vector<std::string> files = event_files(folder);
  if (files.empty()) return;
  TaskSummaries& task = tasks.emplace_back();
  task.task = folder.filename();
  for (const std::string& file : files) read_file(task, file);
}

}  // namespace

std::vector<TaskSummaries> read_summaries(const std::string& folder) {
  fs::path path = fs::path(folder) / "";
  path = path.parent_path();  // removes a slash at the end, so that the path has a name
  if (fs::is_directory(path / "summaries")) path /= "summaries";
  std::vector<TaskSummaries> tasks;
  add_task(tasks, path);
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(path, ignored)) {
    if (entry.is_directory()) add_task(tasks, entry.path());
  }
  if (tasks.empty()) {
    throw Error(
        ErrorCode::kNotFound,
        fmt::format("{}: no event files (events.out.tfevents.…) there, nor in summaries/", folder));
  }
  std::ranges::sort(tasks, {}, &TaskSummaries::task);
  return tasks;
}

}  // namespace paceline
