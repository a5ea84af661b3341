// The output of several tasks in one stream: every line begins with its task's name.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

/// Turns what one task wrote, in chunks cut anywhere, into whole lines "worker:1 | …", each written
/// at once. Borrows the descriptor.
class LinePrefixer {
 public:
  LinePrefixer(std::string prefix, int fd) : prefix_(std::move(prefix)), fd_(fd) {}

  void add(std::string_view chunk);
  /// A last line without an end gets one.
  void finish();

 private:
  void write_line(std::string_view line);

  std::string prefix_;
  int fd_;
  std::string unfinished_;
};

}  // namespace paceline
