// Lines for the user on standard output.
#pragma once

#include <string>

namespace paceline {

/// A progress line on a terminal is replaced by the line that follows it.
class Console {
 public:
  /// `quiet`: prints nothing.
  explicit Console(bool quiet);
  void print(const std::string& line) const { write(line, "\n"); }
  /// On a terminal the next line takes its place; elsewhere as print.
  void print_progress(const std::string& line) const { write(line, terminal_ ? "" : "\n"); }

 private:
  void write(const std::string& line, const char* end) const;

  const bool quiet_, terminal_;
};

}  // namespace paceline
