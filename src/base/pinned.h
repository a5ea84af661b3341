// Threads on cores of their own.
#pragma once

#include <sched.h>

namespace paceline {

/// Keeps the calling thread, and those that it starts, on one core while it lives. Otherwise the
/// times of two threads vary, since the system moves them to one core and apart again. Does nothing
/// on a machine with one core, or where the system refuses.
class Pinned {
 public:
  /// `core` counts the cores that the thread may use, from 0.
  explicit Pinned(int core);
  ~Pinned();
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

  /// Moves the calling thread to the other cores. It may be another thread, or one of a forked
  /// process.
  void leave() const;

 private:
  cpu_set_t before_;
  cpu_set_t others_;  // the allowed cores without this one; empty: nothing is pinned
};

}  // namespace paceline
