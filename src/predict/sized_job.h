// A job of any system, of which only the sizes are known.
#pragma once

#include <string>

#include "predict/prediction.h"

namespace paceline {

/// Parameters, the time of a step, workers, links, and the transport of the other system.
struct SizedJob {
  double parameters = 0, step_ms = 0;
  int tensors = 10, workers = 1, ps = 1;
  Strategy strategy = {};
  double gbps = 0;         // the rate of each task's link; 0: one host has all tasks
  double latency_us = 15;  // of the link
  /// The transport: the rate of a stream, for both directions together, and the time in which a ps
  /// handles a message and its answer, before it handles the next message. 0: no limit.
  double stream_bytes_per_s = 0, message_s = 0;
  double input_per_s = 0, examples = 1;  // examples per second of the input; per step

  bool has_transport() const { return stream_bytes_per_s > 0 || message_s > 0; }
};

/// Describes the job for a prediction, with one message for each tensor. Uses Paceline's own
/// transport, or the other system's.
PredictedJob predicted_job_of(const SizedJob& job, bool own_transport);
JobShape shape_of(const SizedJob& job);

}  // namespace paceline
