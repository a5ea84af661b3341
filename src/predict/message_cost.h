// Measures the time that a small message takes on this machine.
#pragma once

#include <string>

namespace paceline {

/// The cost of a small message whose receiver sleeps until it comes.
struct MessageCost {
  double core_s = 0;  // the time of a core, at each end; 0: not known
  double trip_s = 0;  // from sending it until its receiver has handled it; 0: not known
};

/// Sends small messages to and fro over a link of this kind, between two ends in this process, and
/// returns the median cost. Takes about 20 ms. Counts the core time of the whole process, so
/// nothing else in the process should run. Both costs are 0 if this machine cannot open such a
/// link.
MessageCost measured_message_cost(const std::string& link);

}  // namespace paceline
