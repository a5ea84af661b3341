// The output of several tasks in one stream: every line begins with its task's name.
#pragma once

#include <string>
#include <string_view>

#include "launch/running_task.h"

namespace paceline {

/// Turns the output of one task, which arrives in chunks cut anywhere, into whole lines "worker:1 |
/// …", and writes each line at once. The descriptor stays open.
class LinePrefixer {
 public:
  LinePrefixer(std::string prefix, int fd) : prefix_(std::move(prefix)), fd_(fd) {}

  void add(std::string_view chunk);
  /// Writes what is left, a line without a newline, and adds the newline.
  void finish();

 private:
  void write_line(std::string_view line);

  std::string prefix_;
  int fd_;
  std::string unfinished_;
};

/// Returns an output that writes a task's lines through a LinePrefixer.
TaskOutput prefixed_lines(const std::string& prefix, int fd);

}  // namespace paceline
