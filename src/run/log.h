// The log of a task on standard error: who joined, who was lost, what the task waits for. The
// results of a program (losses, speeds, perplexities) are printed and do not go to the log.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "paceline/cluster.h"
#include "paceline/run_options.h"

namespace paceline {

enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarning, kError };

struct LogOptions {
  LogLevel level = LogLevel::kInfo;  // nothing below it is written
  bool json = false;                 // each line is a JSON object
  // "ps:0"; empty for text lines that a launcher prefixes with the task's name
  std::string task;
  int fd = 2;  // borrowed
};

/// Lines with a time in UTC:
///     2026-11-21T15:53:01.123Z warning ps:0: lost worker:1 at …
///     {"time":"2026-11-21T15:53:01.123Z","level":"warning","task":"ps:0","message":"lost …"}
/// Each line is one write, so that lines of several tasks on one descriptor do not mix. A message
/// of several lines is written as one line. Any thread may call.
class Log {
 public:
  explicit Log(const LogOptions& options);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  void debug(std::string_view message) const { write(LogLevel::kDebug, message); }
  void info(std::string_view message) const { write(LogLevel::kInfo, message); }
  void warning(std::string_view message) const { write(LogLevel::kWarning, message); }
  void error(std::string_view message) const { write(LogLevel::kError, message); }
  void write(LogLevel level, std::string_view message) const;

  /// Keeps a line that the task has printed elsewhere among the log's own last lines. The page
  /// shows these lines while the task runs.
  void remember(std::string_view line) const;
  /// Returns the last lines, oldest first: those of remember(), and those of all levels but kDebug,
  /// even if LogOptions::level keeps them from being written.
  std::vector<std::string> remembered() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Returns the options that --log-level and --log-format ask for, for the task of this process.
LogOptions log_options(const Cluster& cluster, const RunOptions& run);

}  // namespace paceline
