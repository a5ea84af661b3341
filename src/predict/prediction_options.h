// The options of a prediction.
#pragma once

#include <string>
#include <vector>

namespace paceline {

/// What the user wants of a prediction: the hosts, the files to write, and the shapes to compare.
struct PredictionOptions {
  bool asked = false;  // prints only the expected speed, and trains nothing
  /// A file that describes the hosts (docs/predictions.md); empty: the cluster's, or this machine.
  std::string hosts;
  std::string roof;  // a file with this machine's roof; empty: it is measured
  std::string json;  // a file to which all shapes are also written; empty: none
  std::string plot;  // a picture, FILE.svg or FILE.png; empty: none
  /// If true, some steps are timed first, for at most 2 s or one step, unless undisturbed steps of
  /// this graph were timed before. The reason: FLOPs and bytes alone say little about the time of
  /// kernels on cores.
  bool trial = false;
  /// The address of the `paceline predict` that runs copies of this command at once
  /// (train/copies_at_once.h); empty: nobody does.
  std::string copies_by;
  double time_limit_s = 30;  // no shape is tried after this time
  double link_gbps = 0;      // the rate of each host's link; 0: not known
  double link_delay_ms = 0;  // the delay of a packet from a host to the switch
  /// The number of emulated hosts over which each shape's tasks are spread; 0: the tasks have fixed
  /// places.
  int open_hosts = 0;
  /// The emulated host of each ps, by its index; empty: the tasks' addresses determine the hosts.
  std::vector<int> ps_hosts;
  std::vector<int> worker_hosts;  // the emulated host of each worker
  /// The worker whose simulated device is slower than those of the others.
  int straggler = 0;
  double straggler_times = 1;  // how many times as long its steps take; 1: no device is slower
  bool any_ps = false;  // shapes may have any number of parameter servers, not only the launcher's
  bool any_workers = false;    // shapes may have any number of workers, not only the launcher's
  bool this_strategy = false;  // the table of shapes has only the job's strategy
  bool this_wire = false;      // the table has only the job's form of contributions
};

}  // namespace paceline
