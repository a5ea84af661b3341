// The program, host, time and command line of a run, which a report gives beside its numbers.
#pragma once

#include <string>
#include <vector>

namespace paceline {

struct Circumstances {
  std::string version;  // "0.1.0 (commit 1a2b3c4)"
  std::string host;
  std::string started;  // UTC, "2026-11-21T15:53:01Z"
  std::string command;  // the user's command, quoted for a shell

  bool operator==(const Circumstances&) const = default;
};

/// Returns the circumstances of this process.
Circumstances circumstances();

/// Returns a task's command line without the words that its launcher has added.
std::vector<std::string> without_launchers_words(std::vector<std::string> words);
/// Returns this machine's name; "unknown" if it has none.
std::string host_name();
/// Returns the words as one command line, quoted for a shell.
std::string shell_words(const std::vector<std::string>& words);

}  // namespace paceline
