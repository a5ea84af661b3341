// The expected speed of the shapes of a job on some hosts.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "paceline/cluster.h"
#include "params/strategy/job_shape.h"
#include "predict/device_roof.h"
#include "predict/simulation/simulated_job.h"
#include "run/report/limit.h"

namespace paceline {

/// The interval that holds most measured speeds, as factors of the predicted speed. It follows from
/// the errors of earlier predictions.
struct SpeedInterval {
  double low = 1, high = 1;
};

/// The source of the time that a step's kernels take on a machine's cores.
enum class KernelsFrom : std::uint8_t {
  kSteps,         // steps that were timed
  kBesideOthers,  // steps that were timed while other programs had the cores
  kCosts,         // FLOPs and bytes: nothing was measured
};

/// Returns the interval that held 80 of 100 measured speeds of jobs with this limit
/// (docs/predictions.md, bench/predictions.csv).
///
/// If kernels are the limit and other programs disturbed the timed steps, the interval is wider,
/// since these steps may have been slower than later ones. If nothing was measured, it is wider
/// still: the limit may be another one, and models of small ops reached as little as a sixteenth of
/// the steps that their FLOPs and bytes suggest.
SpeedInterval interval_of(Limit limit, KernelsFrom kernels = KernelsFrom::kSteps);

/// The facts about a host that a prediction needs.
struct PredictedHost {
  std::string name;
  double cores = 1;
  double flops_per_s = 0;         // products, all cores
  double bytes_per_s = 0;         // memory, all cores
  double thread_bytes_per_s = 0;  // memory, one thread; 0: bytes_per_s
  // Bytes per second of passes over several arrays at once, such as rules make: by all cores, and
  // by one thread. 0: bytes_per_s and thread_bytes_per_s.
  double rule_bytes_per_s = 0, thread_rule_bytes_per_s = 0;
  // Bytes per second of such passes in arrays that the caches hold, all cores; 0: rule_bytes_per_s.
  double cached_rule_bytes_per_s = 0;
  // The bytes per second that a core sends or receives over TCP, if no link limits it; 0:
  // TransportCosts decides.
  double tcp_send_bytes_per_s = 0, tcp_receive_bytes_per_s = 0;
  // The bytes per second that a core sends and receives if both tasks run on it; 0: the two rates
  // above.
  double core_tcp_send_bytes_per_s = 0, core_tcp_receive_bytes_per_s = 0;
  // The bytes per second that a core encrypts or decrypts; 0: encrypting takes no time.
  double cipher_bytes_per_s = 0;
  // The cost of a small message between two tasks of the host, over TCP and through shared memory:
  // the time of a core at each end, and the time until the receiver has handled it. 0:
  // TransportCosts decides.
  double tcp_message_s = 0, tcp_trip_s = 0, shm_message_s = 0, shm_trip_s = 0;
  double core_trip_s = 0;          // the time of a word from one core to another; 0: not known
  double others_share = 0;         // the share of measuring time in which other programs had cores
  int devices = 1;                 // the number of workers that fit
  double link_bytes_per_s = 0;     // payload, each way; 0: no limit
  double receive_bytes_per_s = 0;  // payload that it receives; 0: link_bytes_per_s
  double latency_s = 0;            // one way, to a switch
  int machine = 0;                 // emulated hosts share one machine
  DeviceRoof device = {};          // of each of its devices that have a roof of their own
};

/// The worker that makes the step.
struct StepOf {
  /// True if the worker applies the model's rules to its own values, as one process does, and as a
  /// worker that makes local steps does.
  bool own_rules = false;
  int workers_on_machine = 1;  // workers that share the worker's machine, itself included
  int towers = 1;
};

struct PredictedJob {
  std::function<SimulatedStep(const StepOf&)> step;
  std::vector<PredictedHost> hosts;
  // Pairs of hosts about which more is known than their links.
  std::vector<SimulatedPair> pairs = {};
  TransportCosts costs = {};
  bool share_memory = true;
  Tls tls = Tls::kOffHost;                    // which links are encrypted
  KernelsFrom kernels = KernelsFrom::kSteps;  // the source of the kernels' time
  /// Steps per second that the input of all workers together allows; 0: the input is no limit.
  double input_steps_per_s = 0;
  /// Called from time to time during a prediction. Returns true if the prediction should stop,
  /// because nobody waits for it any more.
  std::function<bool()> gives_up = {};
  /// The worker whose device takes straggler_times as long as those of the others.
  int straggler = 0;
  double straggler_times = 1;
};

/// Returns the workers on the machine that has most workers of this shape. Throws kInvalidArgument
/// if the hosts have no room for the workers.
int workers_on_a_machine(const PredictedJob& job, const JobShape& shape);

/// The expected speed of one shape.
struct Prediction {
  JobShape shape;
  double steps_per_s = 0;    // all workers together
  double low = 0, high = 0;  // 80 of 100 runs lie between these
  double examples_per_s = 0;
  double times_alone = 0;  // examples/s, relative to one process with one device
  double of_bound = 0;     // relative to the most that devices, links and memory allow
  std::string limit = {};  // the limit in words
  Limit limited_by = Limit::kAnswers;
  bool measured = true;  // false if the time of the step's kernels follows from their costs
};

/// Throws kInvalidArgument if the hosts have no room for the workers, or if steps take years;
/// throws GivenUp if `gives_up` returns true.
Prediction predict(const PredictedJob& job, const JobShape& shape);
/// The first function predicts one process. The second one predicts a shape, for which `alone` is
/// the known prediction of one process.
Prediction predict_alone(const PredictedJob& job);
Prediction predict(const PredictedJob& job, const JobShape& shape, const Prediction& alone);
/// The predictions of several shapes, the fastest first, and the shapes that remained when the job
/// gave up.
struct Predictions {
  std::vector<Prediction> made;
  std::vector<JobShape> untried;
};
/// Calls `known` with each prediction once it is made, in the order of the shapes.
Predictions predict_all(const PredictedJob& job, const std::vector<JobShape>& shapes,
                        const std::function<void(const Prediction&)>& known = {});

}  // namespace paceline
