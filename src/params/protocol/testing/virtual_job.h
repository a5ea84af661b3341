// A whole job in virtual time: the state machines of its ps tasks and workers, and a network that
// delays every message at random, cuts connections and loses what is on them. One seed is one run,
// event by event.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "params/protocol/aggregation.h"

namespace paceline {

struct VirtualOptions {
  int workers = 4;
  int ps = 2;
  std::uint64_t seed = 1;
  AggregationSpec aggregation = {};
  std::int64_t last_step = 100;  // global
  /// The chief initialises the variables once all workers have joined.
  bool start_together = false;
  /// The slowest worker's steps take so many times as long as the fastest one's.
  double spread = 3;
  // Of each worker, how often something befalls it, on average, in a run.
  double deaths = 0;        // its process is gone; half of the dead are restarted
  double cuts = 0;          // one of its connections is cut, and comes back
  double early_leaves = 0;  // it says goodbye before the last step
  double latecomers = 0;    // it starts in the middle of the run
  /// Faults that a test plants, to see that they are found.
  enum class Plant : std::uint8_t { kNone, kEndTwice, kLostWake, kSendAllAgain };
  Plant plant = Plant::kNone;
};

struct VirtualResult {
  /// What was not as it must be, one line each; empty: nothing.
  std::vector<std::string> errors;
  std::int64_t global_step = 0;
  std::int64_t applied = 0;  // steps that ended and counted, as the run itself has counted them
  std::int64_t come_backs = 0, restarts = 0, lost_messages = 0;
  std::int64_t most_ahead = 0;  // own steps that a worker began beyond the slowest member's
  double longest_wait_s = 0;    // that a living worker waited in one step
  double seconds = 0;           // virtual
  std::uint64_t events = 0, hash = 0;
};

/// Runs the job to its end and checks: it ends; every applied step is counted once; each piece of a
/// contribution is applied once, and all of them of a step that has ended; nobody waits for longer
/// than a lost peer may go unnoticed.
VirtualResult run_virtual_job(const VirtualOptions& options);

}  // namespace paceline
