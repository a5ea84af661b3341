// A whole job in virtual time: the state machines of its ps tasks and workers, and a network that
// delays every message at random, cuts connections, and loses and repeats messages. Values and
// contributions are sizes, cut into frames and answered in the order and window of the real ps. One
// seed is one run, event by event.
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
  /// Contributions are applied at the end of a step, not chunk by chunk.
  bool clipped = false;
  /// The bytes that a connection sends in a second, each way.
  double bytes_per_s = 1e9;
  // The number of times that something befalls a worker in a run, on average.
  double deaths = 0;        // its process is gone; half of the dead are restarted
  double cuts = 0;          // one of its connections is cut, and made anew
  double early_leaves = 0;  // it says goodbye before the last step
  double latecomers = 0;    // it starts in the middle of the run
  /// The number of times that a ps loses its values and is started again in a run, on average. All
  /// then goes on from a checkpoint, which the chief makes every 20 global steps.
  double ps_deaths = 0;
  /// The share of messages that are lost. What follows a lost message on its connection is lost as
  /// well, and the connection is cut.
  double losses = 0;
  /// The share of steps that a worker sends a second time to a ps.
  double repeats = 0;
  /// Records are shared out, ten to a step, and training ends when those of one epoch of this size
  /// are used; 0: none are. `last_step` is then to be out of reach.
  std::int64_t records = 0;
  /// Faults that a test plants, to see that they are found.
  enum class Plant : std::uint8_t {
    kNone,
    kEndTwice,        // the end of a step is counted twice
    kLostWake,        // a worker is not told that it may begin its next step
    kSendAllAgain,    // a worker sends again what was handled before its connection came back
    kLossGoesOn,      // a message is lost, and its connection goes on
    kForgetLost,      // a worker does not send again what was lost with a connection
    kRepeatsCount,    // a step that is sent a second time is applied again
    kRepliesInOrder,  // a ps does not send first the piece that is needed first
    kNoWindow,        // a ps gives a connection all replies at once
    kValuesStay,      // a ps goes on with its values when the chief asks it to begin again
    // These count what happens in rounds.
    kOneShardIsEnough,    // what is whole on ps 0 counts as whole on all
    kToldAndNotApplied,   // a worker is told that its step counts, and it does not
    kOneSumsWhatItLikes,  // a ps leaves a contributor out
    // These count what happens while records are shared out.
    kReadsTooMuch,  // a worker reads records that it has not said that it reads
  };
  Plant plant = Plant::kNone;
};

struct VirtualResult {
  /// Each line names something that was not as it must be.
  std::vector<std::string> errors;
  std::int64_t global_step = 0;
  std::int64_t applied = 0;  // steps that ended and counted, as the run itself has counted them
  std::int64_t come_backs = 0, restarts = 0, lost_messages = 0, repeated_steps = 0;
  std::int64_t ps_restarts = 0, restores = 0;
  std::int64_t replies = 0, waiting_replies = 0;  // all, and those that the window held back
  std::int64_t rounds = 0, dropped = 0, folded = 0;
  std::int64_t records_used = 0, records_given_again = 0;
  std::int64_t most_ahead = 0;  // own steps that a worker began beyond the slowest member's
  double longest_wait_s = 0;    // that a living worker waited in one step
  double seconds = 0;           // virtual
  std::uint64_t events = 0, hash = 0;
};

/// Runs the job to its end and checks: it ends; every applied step is counted once; each byte of a
/// contribution is applied once, and all of them of a step that has ended; a step of which a worker
/// is told that it counts is applied on that ps; all ps tasks sum the same contributions in the
/// same order; the global step never goes back, but for a ps that was lost; replies go out in the
/// order in which the worker needs them, and a connection holds at most their window; nobody waits
/// for longer than a lost peer may go unnoticed.
VirtualResult run_virtual_job(const VirtualOptions& options);

}  // namespace paceline
