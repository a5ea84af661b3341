// The expected speed of the ways to distribute a job over some hosts.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "paceline/cluster.h"
#include "params/strategy/job_shape.h"
#include "predict/simulation/simulated_job.h"
#include "run/report/limit.h"

namespace paceline {

/// The interval in which most measured speeds lie, by how wrong predictions were: factors of the
/// predicted speed.
struct SpeedInterval {
  double low = 1, high = 1;
};

/// Where the time of a step's kernels on the cores of a machine is known from.
enum class KernelsFrom : std::uint8_t {
  kSteps,         // that were timed
  kBesideOthers,  // the same, while other programs had the cores
  kCosts,         // FLOPs and bytes: nothing was measured
};

/// 80 of 100 measured speeds of jobs with that limit were between these (docs/predictions.md,
/// bench/predictions.csv). Steps that other programs disturbed were maybe slower than those to
/// come, where kernels are the limit. Where nothing was measured any limit may be another one, and
/// models of small ops made up to 16 times fewer steps than their FLOPs and bytes say.
SpeedInterval interval_of(Limit limit, KernelsFrom kernels = KernelsFrom::kSteps);

/// A host as far as prediction needs to know it.
struct PredictedHost {
  std::string name;
  double cores = 1;
  double flops_per_s = 0;         // products on all cores
  double bytes_per_s = 0;         // memory, all cores
  double thread_bytes_per_s = 0;  // memory, one thread; 0: as all
  // The same of passes over several arrays at once, as of rules; 0: as above.
  double rule_bytes_per_s = 0, thread_rule_bytes_per_s = 0;
  // The same in arrays that the caches hold, all cores; 0: as above.
  double cached_rule_bytes_per_s = 0;
  // What a core sends or receives over TCP, without a limit of the link; 0: by TransportCosts.
  double tcp_send_bytes_per_s = 0, tcp_receive_bytes_per_s = 0;
  // The same between two tasks on one core; 0: as above.
  double core_tcp_send_bytes_per_s = 0, core_tcp_receive_bytes_per_s = 0;
  double cipher_bytes_per_s = 0;   // what a core encrypts or decrypts; 0: it takes no time
  double core_trip_s = 0;          // of a word from one core to another; 0: not known
  double others_share = 0;         // of the time of measuring it, in which other programs had cores
  int devices = 1;                 // workers that fit
  double link_bytes_per_s = 0;     // payload, each way; 0: no limit
  double receive_bytes_per_s = 0;  // payload that it receives; 0: as it sends
  double latency_s = 0;            // one way, to a switch
  int machine = 0;                 // emulated hosts share one
};

/// The worker whose step is made.
struct StepOf {
  /// It applies the model's rules to values of its own, as one process does, and one that makes
  /// local steps.
  bool own_rules = false;
  int workers_on_machine = 1;  // it shares the machine with the others
  int towers = 1;
};

struct PredictedJob {
  std::function<SimulatedStep(const StepOf&)> step;
  std::vector<PredictedHost> hosts;
  std::vector<SimulatedPair> pairs = {};  // of hosts between which more is known than their links
  TransportCosts costs = {};
  bool share_memory = true;
  Tls tls = Tls::kOffHost;                    // the links that are encrypted
  KernelsFrom kernels = KernelsFrom::kSteps;  // the time of the step's kernels
  /// Steps per second that the input of all workers together allows; 0: it is no limit.
  double input_steps_per_s = 0;
  /// Asked now and then while a way is predicted: true when nobody waits for more of them.
  std::function<bool()> gives_up = {};
  /// The worker whose device takes so many times as long as those of the others.
  int straggler = 0;
  double straggler_times = 1;
};

/// The expected speed of one way.
struct Prediction {
  JobShape shape;
  double steps_per_s = 0;    // of all workers
  double low = 0, high = 0;  // 80 of 100 runs are between them
  double examples_per_s = 0;
  double times_alone = 0;  // examples/s, of one process with one device
  double of_bound = 0;     // of what devices, links and memory allow at most
  std::string limit = {};  // in words
  Limit limited_by = Limit::kAnswers;
  bool measured = true;  // false where the time of the step's kernels follows from their costs
};

/// Throws kInvalidArgument when the hosts have no room for the workers, or when steps take years;
/// GivenUp when the job gives up.
Prediction predict(const PredictedJob& job, const JobShape& shape);
/// The same of one process, and of a way where that of one process is known.
Prediction predict_alone(const PredictedJob& job);
Prediction predict(const PredictedJob& job, const JobShape& shape, const Prediction& alone);
/// The predictions of several ways, the fastest first, and the ways that were left when the job
/// gave up.
struct Predictions {
  std::vector<Prediction> made;
  std::vector<JobShape> untried;
};
/// `known` is called with each prediction once it is made, in the order of the ways.
Predictions predict_all(const PredictedJob& job, const std::vector<JobShape>& shapes,
                        const std::function<void(const Prediction&)>& known = {});

}  // namespace paceline
