// Threads on cores of their own.
#pragma once

#include <sched.h>

namespace paceline {

/// Keeps the calling thread, and those that it starts, on one core while it lives. Times of two
/// threads vary when the system moves them together and apart. Does nothing on a machine with one
/// core, or where the system refuses.
class Pinned {
 public:
  /// `core` counts the cores that the thread may use, from 0.
  explicit Pinned(int core);
  ~Pinned();
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

  /// The calling thread leaves the core. It may be another thread, or one of a forked process.
  void leave() const;

 private:
  cpu_set_t before_;
  cpu_set_t others_;  // every core that the thread may use but this one; empty: it is not pinned
};

}  // namespace paceline
