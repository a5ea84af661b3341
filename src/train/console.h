// Lines for the user on standard output.
#pragma once

#include <string>

#include "run/log.h"

namespace paceline {

/// A progress line on a terminal is replaced by the line that follows it.
class Console {
 public:
  /// If `quiet` is true, prints nothing. A log, which may be null, remembers each line even then.
  explicit Console(bool quiet, const Log* log = nullptr);
  void print(const std::string& line) const { write(line, "\n"); }
  /// Prints a line that the next line replaces on a terminal. Elsewhere it does the same as print.
  void print_progress(const std::string& line) const { write(line, terminal_ ? "" : "\n"); }

 private:
  void write(const std::string& line, const char* end) const;

  const bool quiet_, terminal_;
  const Log* const log_;
};

}  // namespace paceline
