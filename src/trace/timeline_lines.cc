#include "trace/timeline_lines.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "paceline/error.h"

namespace paceline {
namespace {

constexpr std::string_view kTimelineHead = R"({"displayTimeUnit": "ms", "traceEvents": [)";
constexpr std::string_view kTimelineTail = "]}";

// Returns microseconds with three decimals, exactly. A double would lose digits of a long time.
std::string microseconds_text(std::int64_t nanoseconds) {
  const bool negative = nanoseconds < 0;
  const std::uint64_t all = negative ? 0 - std::uint64_t(nanoseconds) : std::uint64_t(nanoseconds);
  return fmt::format("{}{}.{:03}", negative ? "-" : "", all / 1000, all % 1000);
}

}  // namespace

std::string quoted_json(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string metadata_line(std::string_view name, TimelinePlace place, std::string_view arguments) {
  return fmt::format(R"({{"ph": "M", "name": "{}", "pid": {}, "tid": {}, "args": {{{}}}}})", name,
                     place.process, place.thread, arguments);
}

std::string span_line(std::string_view name, std::string_view category, TimelinePlace place,
                      std::int64_t begin, std::int64_t end, std::string_view arguments) {
  return fmt::format(
      R"({{"ph": "X", "name": {}, "cat": "{}", "pid": {}, "tid": {}, "ts": {}, "dur": {}, )"
      R"("args": {{{}}}}})",
      quoted_json(name), category, place.process, place.thread, microseconds_text(begin),
      microseconds_text(end - begin), arguments);
}

std::string arrow_line(char phase, std::string_view name, TimelinePlace place, std::size_t number,
                       std::int64_t at) {
  return fmt::format(
      R"({{"ph": "{}", "name": "{}", "cat": "arrow", "id": {}, "pid": {}, "tid": {}, "ts": {}{}}})",
      phase, name, number, place.process, place.thread, microseconds_text(at),
      phase == 'f' ? R"(, "bp": "e")" : "");
}

std::string text_of_timeline(std::string_view lines) {
  return fmt::format("{}\n{}{}{}\n", kTimelineHead, lines, lines.empty() ? "" : "\n",
                     kTimelineTail);
}

void for_lines_of_timeline(const std::string& path,
                           const std::function<void(std::string_view)>& line) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(ErrorCode::kNotFound, "there is no timeline at " + path);
  std::string text;
  if (!std::getline(file, text) || text != kTimelineHead) {
    throw Error(ErrorCode::kDataLoss, path + " is no timeline of a task of Paceline");
  }
  // In a file that was cut, the last line has no newline.
  while (std::getline(file, text) && text != kTimelineTail && !file.eof()) {
    std::string_view event = text;
    if (event.ends_with(',')) event.remove_suffix(1);
    line(event);
  }
  if (text != kTimelineTail) {
    throw Error(ErrorCode::kDataLoss, "the timeline " + path + " is not whole: its end is missing");
  }
}

}  // namespace paceline
