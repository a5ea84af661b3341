// The facts of this machine: its roof, and the pace of steps on it.
#pragma once

#include <string>

#include "predict/host_cache.h"
#include "predict/pace_cache.h"
#include "predict/roof_cache.h"

namespace paceline {

/// This machine as a host of a prediction, as it was measured in the last hour (HostCache). It is
/// measured in 0.3 s unless that was done within ten minutes, and nothing ran beside it.
SeenHost this_host();
/// Says when it was measured last, and how fast it was; empty when that is not noted.
std::string noted_host_text();
/// The same with its roof of now, which is measured in 0.3 s.
PredictedHost measured_host();
/// The same with the median of three roofs of now, in 0.9 s, since one of them may be off. Keeps it
/// for this_host().
SeenHost host_of_moment();
/// The best roofs that are kept in the cache folder, to which runs are compared.
RoofCache this_roof_cache();
/// The paces that are kept in the cache folder.
PaceCache this_pace_cache();

}  // namespace paceline
