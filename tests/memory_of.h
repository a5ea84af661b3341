// Measures the memory of a running process, for tests that bound it.
#pragma once

#include <fmt/format.h>
#include <sys/types.h>

#include <fstream>
#include <string>

namespace paceline::testing {

/// Returns the resident memory of a process on this host in MB; 0 if there is no such process.
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
