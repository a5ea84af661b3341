// The signals that ask a process to end.
#pragma once

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"

namespace paceline {

/// timeout(1), and others that end jobs, signal a process and then its whole group. A signal that
/// arrives so soon after the first is the same request, not a second one.
constexpr Duration kSameRequest = std::chrono::milliseconds(200);

/// SIGINT and SIGTERM, as a set for masks and signalfd.
inline sigset_t ending_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

/// Takes the signals that have arrived at a signalfd that does not block.
inline void drain_signals(int signals) {
  signalfd_siginfo taken;
  while (read(signals, &taken, sizeof taken) > 0) {
  }
}

}  // namespace paceline
