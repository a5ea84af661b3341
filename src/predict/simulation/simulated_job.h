// A job as the simulator knows it: what a step does, which machines and links there are, and how
// the workers train together.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "exec/parameter_store.h"
#include "paceline/cluster.h"
#include "params/outer/outer_options.h"
#include "params/strategy/strategies.h"
#include "params/wire/wire_form.h"
#include "predict/simulation/link_network.h"
#include "predict/simulation/machine_share.h"

namespace paceline {

/// The next action of a worker's step thread.
struct StepAction {
  enum class Kind : std::uint8_t { kRun, kNeed, kReady };
  Kind kind = Kind::kRun;
  VariableId variable = -1;
  double seconds = 0;  // kRun: on the worker's device, alone
  double bytes = 0;    // kRun on a device of cores: that pass the memory; kReady: of each tower's
};

/// A step's use of a variable.
struct StepVariable {
  bool read = false, updated = false;
  bool reread = false;         // by several kernels
  std::int64_t most_rows = 0;  // of a sparse one
  double rule_bytes = 0;       // that its update passes over, the contribution included
  int tensors = 1;             // that it stands for, each with messages of its own
};

/// The step of one worker.
struct SimulatedStep {
  std::vector<StepAction> actions;
  std::vector<VariableSpec> specs;
  std::vector<StepVariable> variables;  // by VariableId
  std::vector<VariableId> need_order;   // in which the plan first reads them
  bool clipped = false;
  double examples = 1;
  double input_seconds = 0;  // of a core, to make or copy a batch
  int threads = 0;           // of its kernels, on the cores of its host; 0: on a device of its own
  double busy = 1;           // the part of the kernels' time in which these threads compute
  int towers = 1;            // devices that make it at once, each of a batch of its own
  int rule_threads = 1;      // that apply rules in the worker

  /// The time of its kernels, when they run alone.
  double seconds() const {
    double sum = 0;
    for (const StepAction& action : actions) sum += action.seconds;
    return sum;
  }
  /// That the updates of all variables pass over.
  double rule_bytes() const {
    double bytes = 0;
    for (const StepVariable& use : variables) bytes += use.rule_bytes;
    return bytes;
  }
};

/// The time that tasks take to send, receive and wake, on a core.
struct TransportCosts {
  double send_s_per_byte = 0.25e-9, receive_s_per_byte = 0.35e-9;  // tcp
  double cipher_s_per_byte = 0;      // besides, at each end of a stream that is encrypted
  double frame_s = 2e-6;             // of each frame, at each end
  double shared_frame_s = 3e-6;      // the same in shared memory
  double ring_s_per_byte = 0.15e-9;  // of values that are sent through it, at each end
  /// The thread that makes a step hands each message of a contribution over in so much time (tcp):
  /// resnet, which has hundreds of them, was seen to take 7 to 18 ms longer than its device alone.
  double hand_over_s = 20e-6;
  /// The pass that sums several contributions reads them at so much of the rate of rules: runs of
  /// mlp in rounds fit 0.44 to 0.5.
  double contributions_of_rules = 0.46;
  /// The bytes in passes of rules that take as long as to read so many contributions for their sum.
  double bytes_to_sum(double bytes, double contributions) const {
    return bytes * contributions / contributions_of_rules;
  }
  double wake_s = 30e-6;   // until a thread that sleeps goes on
  double step_s = 100e-6;  // of a step of several tasks, beside kernels and messages
  /// The same of one process: reports of mlp, whose steps take 0.19 ms, give it 1 to 3 us.
  double alone_step_s = 3e-6;
  /// A stream moves at most so many bytes in a second, whatever its link could; 0: no limit.
  double stream_bytes_per_s = 0;
  /// Each ps handles one variable's message and its answer after the other, in so much time; 0: as
  /// its cores allow.
  double serial_message_s = 0;
  /// The bytes that the system holds of a stream, beyond which its sender waits.
  double socket_bytes = 1 << 20;
  double quantum = 64 * 1024;  // of a link that several streams share
  bool operator==(const TransportCosts&) const = default;
};

struct SimulatedCluster {
  std::vector<SimulatedMachine> machines = {};
  std::vector<SimulatedHost> hosts = {};
  std::vector<SimulatedPair> pairs = {};   // of hosts between which more is known than their links
  std::vector<int> ps = {}, workers = {};  // the host of each task
  bool share_memory = true;                // between tasks of one host
  Tls tls = Tls::kOffHost;                 // the streams that are encrypted
  int ps_threads = 0;                      // of each ps; 0: all cores of its machine
  /// By worker: its device takes so many times as long as the step says; empty: none does.
  std::vector<double> slowness = {};
  double slowness_of(int worker) const {
    return slowness.empty() ? 1 : slowness[std::size_t(worker)];
  }
};

struct SimulatedJob {
  const SimulatedStep* step = nullptr;
  SimulatedCluster cluster = {};
  Strategy strategy = {};
  WireForm wire = {};
  int accumulate = 1;
  TransportCosts costs = {};
  std::int64_t warm_steps = 5;  // of each worker, which are not counted
  std::int64_t steps = 20;      // that are
  std::uint64_t seed = 1;
  std::function<bool()> gives_up = {};  // asked now and then; empty: never
};

/// Throws kInvalidArgument for a strategy that there is not.
const StrategyKind& kind_of(const SimulatedJob& job);
/// The options of local steps.
OuterOptions outer_options_of(const SimulatedJob& job);

/// Where the time of the counted steps went.
struct SimulatedUse {
  // Of all workers' time: on the device, waiting for values, for the answer to a step, for others.
  double device = 0, values = 0, answer = 0, others = 0, rules = 0;
  std::vector<double> sent = {}, received = {};  // bytes a second, by host
  std::vector<double> carried = {};              // bytes a second, by pair of hosts
  std::vector<double> cores = {};                // busy, by machine: of all of its cores
  std::vector<double> memory = {};               // busy, by machine
  std::vector<double> moved = {};                // bytes a second of its memory
  std::vector<double> applying = {};  // by ps: the share of the time in which it applies rules
};

struct SimulatedSpeed {
  double steps_per_s = 0;            // of all workers
  std::vector<double> workers = {};  // of each
  SimulatedUse use = {};
  std::uint64_t events = 0;
};

}  // namespace paceline
