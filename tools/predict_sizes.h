// A prediction for any system's model, of which only sizes are known.
#pragma once

#include "cluster/flags/command_line.h"
#include "predict/forecast.h"

namespace paceline {

/// Parameters, the time of a step, workers and links, as flags give them.
struct SizedJob {
  double parameters = 0, step_ms = 0;
  int tensors = 10, workers = 1, ps = 1;
  double gbps = 0, latency_us = 15;  // of each host's link; 0: all tasks are on one host
  double stream_bytes_per_s = 0, message_s = 0;  // of the transport; 0: Paceline's own
  double input_per_s = 0, examples = 1;
  std::string strategy = "async";
};

std::vector<Flag> sized_flags();
/// Throws kUsage.
SizedJob read_sized_job(const FlagValues& values);
/// "332MB/s,350us": the rate of a stream and the time of a message. Throws kUsage.
void read_transport(const std::string& text, SizedJob& job);

/// What the job would make: with the reporter's transport, if it has one, or with Paceline's own.
ForecastJob forecast_job_of(const SizedJob& job, bool own_transport);
Way way_of(const SizedJob& job);
std::string sized_text(const SizedJob& job);

}  // namespace paceline
