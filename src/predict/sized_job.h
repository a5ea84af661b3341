// A job of any system's, of which only sizes are known.
#pragma once

#include <string>

#include "predict/prediction.h"

namespace paceline {

/// Parameters, the time of a step, workers, links, and the transport of the other system.
struct SizedJob {
  double parameters = 0, step_ms = 0;
  int tensors = 10, workers = 1, ps = 1;
  Strategy strategy = {};
  double gbps = 0;         // of each host's link, every task on a host; 0: all are on one host
  double latency_us = 15;  // of it
  /// The transport: the rate of a stream, of both ways together, and the time in which a ps handles
  /// a message and its answer, one after the other. 0: no limit.
  double stream_bytes_per_s = 0, message_s = 0;
  double input_per_s = 0, examples = 1;  // of a step

  bool has_transport() const { return stream_bytes_per_s > 0 || message_s > 0; }
};

/// Every tensor is a message. With Paceline's own transport, or with the other system's.
PredictedJob predicted_job_of(const SizedJob& job, bool own_transport);
JobShape shape_of(const SizedJob& job);

}  // namespace paceline
