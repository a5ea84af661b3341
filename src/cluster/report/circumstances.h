// Which program ran where, and since when: what a report says of a run beside its numbers.
#pragma once

#include <string>
#include <vector>

namespace paceline {

struct Circumstances {
  std::string version;  // "0.1.0 (commit 1a2b3c4)"
  std::string host;
  std::string started;  // UTC, "2026-11-21T15:53:01Z"
  std::string command;  // the command line of this process, as a shell takes it

  bool operator==(const Circumstances&) const = default;
};

/// Of this process.
Circumstances circumstances();

/// This machine's name; "unknown" where it has none.
std::string host_name();
/// The words as a shell takes them.
std::string shell_words(const std::vector<std::string>& words);

}  // namespace paceline
