// The wishes of the user about predictions.
#pragma once

#include <string>
#include <vector>

namespace paceline {

/// The wishes of the user about predictions of a job's speed.
struct PredictionOptions {
  bool asked = false;  // prints only the expected speed, and trains nothing
  std::string hosts;   // a file that describes the hosts (docs/predictions.md); empty: this machine
  std::string roof;    // a file with this machine's roof; empty: it is measured
  std::string json;    // a file to which all shapes are also written; empty: none
  std::string plot;    // a picture, FILE.svg or FILE.png; empty: none
  /// If true, some steps are timed first, for at most 2 s or one step, unless undisturbed steps of
  /// this graph were timed before. The reason: FLOPs and bytes alone say little about the time of
  /// kernels on cores.
  bool trial = false;
  double time_limit_s = 30;  // no shape is tried after this time
  double link_gbps = 0;      // the rate of each host's link; 0: not known
  double link_delay_ms = 0;  // the delay of a packet from a host to the switch
  /// The number of emulated hosts over which each shape's tasks are spread; 0: the job's tasks have
  /// places.
  int open_hosts = 0;
  /// The emulated host of each ps, by its index; empty: the tasks' addresses determine the hosts.
  std::vector<int> ps_hosts;
  std::vector<int> worker_hosts;  // the emulated host of each worker
  /// The worker whose simulated device is slower than those of the others.
  int straggler = 0;
  double straggler_times = 1;  // how many times as long its steps take; 1: no device is slower
  bool any_ps = false;         // the launcher's number of parameter servers may be chosen
  bool any_workers = false;    // the launcher's number of workers may be chosen
  bool this_strategy = false;  // the table of shapes has only the job's strategy
  bool this_wire = false;      // the table has only the job's form of contributions
};

}  // namespace paceline
