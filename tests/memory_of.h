// The memory of a running process, for tests that bound it.
#pragma once

#include <fmt/format.h>
#include <sys/types.h>

#include <fstream>
#include <string>

namespace paceline::testing {

/// The resident memory of a process of this host; 0 when there is none.
inline double memory_mb(pid_t process) {
  std::ifstream status(fmt::format("/proc/{}/status", process));
  for (std::string word; status >> word;) {
    if (word != "VmRSS:") continue;
    double kilobytes = 0;
    status >> kilobytes;
    return kilobytes / 1024;
  }
  return 0;
}

}  // namespace paceline::testing
