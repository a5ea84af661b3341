// The lines of a timeline file in Chrome's trace event format. Each event has a line of its own, so
// that files are read and merged line by line.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "trace/timeline.h"

namespace paceline {

/// Where a viewer shows an event.
struct TimelinePlace {
  int process = 0;
  int thread = 0;
};

/// Returns the text as JSON, in quotes.
std::string quoted_json(std::string_view text);
/// Returns the line that names a process or thread in a viewer. `name` is such as "process_name",
/// and the arguments are JSON.
std::string metadata_line(std::string_view name, TimelinePlace place, std::string_view arguments);
/// Returns the line of a span. Its arguments are JSON, too; its times are nanoseconds.
std::string span_line(std::string_view name, std::string_view category, TimelinePlace place,
                      std::int64_t begin, std::int64_t end, std::string_view arguments);
/// Returns the line of one end of an arrow: phase s (start), t (a point on its way) or f (finish).
std::string arrow_line(char phase, std::string_view name, TimelinePlace place, std::size_t number,
                       std::int64_t at);

/// Returns the text of a file that has these lines.
std::string text_of_timeline(std::string_view lines);
/// Calls `line` with the line of each event in a file. Throws kNotFound if there is no such file,
/// and kDataLoss naming the path if it is not a timeline or is cut short.
void for_lines_of_timeline(const std::string& path,
                           const std::function<void(std::string_view)>& line);

}  // namespace paceline
