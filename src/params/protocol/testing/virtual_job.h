// A whole job in virtual time: the state machines of its ps tasks and workers, and a network that
// delays every message at random, cuts connections, and loses and repeats messages. Values and
// contributions have sizes, but no content. They are cut into frames, and the ps tasks answer in
// the order and with the window of a real ps. A seed determines a run, event by event.
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
  /// If true, the chief initialises the variables only once all workers have joined.
  bool start_together = false;
  /// The slowest worker's steps take `spread` times as long as the fastest worker's.
  double spread = 3;
  /// If true, contributions are clipped, and so applied at the end of a step, not chunk by chunk.
  bool clipped = false;
  /// How many bytes a connection carries in a second in each direction.
  double bytes_per_s = 1e9;
  // How many of each of these faults a worker has in a run, on average.
  double deaths = 0;        // its process dies; half of the dead are restarted
  double cuts = 0;          // one of its connections is cut, and made anew
  double early_leaves = 0;  // it says goodbye before the last step
  double latecomers = 0;    // it starts in the middle of the run
  /// How many times, on average, a ps loses its values in a run and is started again. Everything
  /// then continues from a checkpoint. The chief makes a checkpoint every 20 global steps, or every
  /// 3 in rounds.
  double ps_deaths = 0;
  /// The share of messages that are lost. Later messages on the same connection are lost as well,
  /// and the connection is cut.
  double losses = 0;
  /// The share of steps that a worker sends to a ps a second time; not in rounds.
  double repeats = 0;
  /// The number of records in an epoch; each step reads ten. Training ends when all records are
  /// used, so `last_step` must be out of reach. 0: no records are shared out.
  std::int64_t records = 0;
  /// Faults that a test plants, to check that they are found.
  enum class Plant : std::uint8_t {
    kNone,
    kEndTwice,        // the end of a step is counted twice
    kLostWake,        // a worker does not hear that it may begin its next step
    kSendAllAgain,    // a worker sends again what was handled before its connection came back
    kLossGoesOn,      // a message is lost, and its connection goes on
    kForgetLost,      // a worker does not send again the messages that a cut has lost
    kRepeatsCount,    // a step that is sent a second time is applied again
    kRepliesInOrder,  // a ps does not send first the piece that is needed first
    kNoWindow,        // a ps gives a connection all replies at once
    kValuesStay,      // a ps keeps its values when the chief asks it to begin again
    // These change what happens in rounds.
    kOneShardIsEnough,    // a contribution that is whole on ps 0 counts as whole on all
    kToldAndNotApplied,   // a worker hears that its step counts, but it does not
    kOneSumsWhatItLikes,  // a ps leaves a contributor out
    // These change what happens while records are shared out.
    kReadsTooMuch,  // a worker reads more records than it has said
  };
  Plant plant = Plant::kNone;
};

struct VirtualResult {
  /// Each line names an invariant that did not hold.
  std::vector<std::string> errors;
  std::int64_t global_step = 0;
  std::int64_t applied = 0;  // global steps, as VirtualPs of ps 0 has counted them
  std::int64_t come_backs = 0, restarts = 0, lost_messages = 0, repeated_steps = 0;
  std::int64_t ps_restarts = 0, restores = 0;
  std::int64_t replies = 0, waiting_replies = 0;  // all replies; those that the window held back
  std::int64_t rounds = 0, dropped = 0, folded = 0;
  std::int64_t records_used = 0, records_given_again = 0;
  std::int64_t most_ahead = 0;  // how many own steps a worker has begun beyond the slowest worker's
  double longest_wait_s = 0;    // the longest wait of a living worker in one step
  double seconds = 0;           // virtual
  std::uint64_t events = 0, hash = 0;
};

/// Runs the job to its end and checks:
/// - The job ends.
/// - Every applied step is counted once.
/// - No byte of a contribution is applied twice, and every byte of a step that has ended is
/// applied.
/// - If a ps tells a worker that a step counts, that ps has applied the step.
/// - All ps tasks sum the same contributions in the same order.
/// - The global step that a task knows never goes back, unless a ps was lost with its values.
/// - Replies go out in the order in which the worker needs them.
/// - A connection never holds more than one window of replies, unless it holds a single reply.
/// - A worker does not wait for longer than its lost peers may take to be noticed, one after
///   another.
VirtualResult run_virtual_job(const VirtualOptions& options);

}  // namespace paceline
