// What is known of this machine: its roof, its network, and the pace of steps on it.
#pragma once

#include "predict/forecast.h"
#include "predict/pace_cache.h"

namespace paceline {

/// This machine as a host of a prediction, with the best roof that it was ever seen to have. It is
/// measured in half a second unless it is kept in the cache folder.
ForecastHost this_host();
/// The same with its roof of now, which is measured in half a second.
ForecastHost measured_host();
/// The paces that are kept in the cache folder.
PaceCache this_pace_cache();
/// The rate of the fastest network card in Gbit/s; 0 when the system does not say.
double network_gbps();

}  // namespace paceline
