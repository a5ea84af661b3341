// The signals that ask a process to end.
#pragma once

#include <signal.h>

namespace paceline {

/// SIGINT and SIGTERM, as a set for masks and signalfd.
inline sigset_t ending_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

}  // namespace paceline
