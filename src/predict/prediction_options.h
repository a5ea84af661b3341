// The wishes of the user about predictions.
#pragma once

#include <string>
#include <vector>

namespace paceline {

/// The wishes of the user about predictions of a job's speed.
struct PredictionOptions {
  bool asked = false;  // only what is expected is printed, and nothing is trained
  std::string hosts;   // a file that describes the hosts (docs/predictions.md); empty: this machine
  std::string roof;    // a file with the roof of this machine; empty: it is measured
  std::string json;    // a file to which all ways are written too; empty: none
  std::string plot;    // a picture, FILE.svg or FILE.png; empty: none
  /// Some steps are timed first, in 2 s at most or in one step, unless undisturbed ones of the same
  /// graph were timed before: FLOPs and bytes alone say little about kernels of the cores.
  bool trial = false;
  double time_limit_s = 30;  // no way is tried after so long
  double link_gbps = 0;      // the rate of each host's link; 0: not known
  double link_delay_ms = 0;  // the delay of a packet from a host to the switch
  /// The tasks of each way are spread over so many emulated hosts; 0: those of the job have places.
  int open_hosts = 0;
  /// The emulated host of each ps, by its index; empty: the addresses say it.
  std::vector<int> ps_hosts;
  std::vector<int> worker_hosts;  // the same of the workers
  /// The worker whose simulated device is slower than those of the others.
  int straggler = 0;
  double straggler_times = 1;  // as long as those of the others are its steps; 1: none is slower
  bool any_ps = false;         // the launcher's number of parameter servers may be chosen
  bool any_workers = false;    // the same of its workers
  bool this_strategy = false;  // the table of ways has no other than the job's
  bool this_wire = false;      // the same of the form of contributions
};

}  // namespace paceline
