// A job as the simulator sees it: what a step does, which machines and links there are, and how the
// workers train together.
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
  double seconds = 0;  // kRun: on the worker's device alone
  // kRun on cores: bytes through the memory; kReady: bytes of each tower's contribution
  double bytes = 0;
};

/// A step's use of a variable.
struct StepVariable {
  bool read = false, updated = false;
  bool reread = false;         // several kernels read it
  std::int64_t most_rows = 0;  // of a sparse variable
  double rule_bytes = 0;       // the bytes that its update passes over, including the contribution
  /// The number of tensors for which the variable stands, each with its own messages.
  int tensors = 1;
};

/// The step of one worker.
struct SimulatedStep {
  std::vector<StepAction> actions;
  std::vector<VariableSpec> specs;
  std::vector<StepVariable> variables;  // by VariableId
  // The variables in the order in which the plan first reads them.
  std::vector<VariableId> need_order;
  bool clipped = false;
  double examples = 1;
  double input_seconds = 0;  // the time of a core to make or copy a batch
  /// How many of its host's cores the kernels use; 0: the worker has its own device.
  int threads = 0;
  double busy = 1;       // the part of the kernels' time in which these threads compute
  int towers = 1;        // devices that make the step at once, each with its own batch
  int rule_threads = 1;  // threads that apply rules in the worker

  /// The time of the step's kernels if they run alone.
  double seconds() const {
    double sum = 0;
    for (const StepAction& action : actions) sum += action.seconds;
    return sum;
  }
  /// The bytes that the updates of all variables pass over.
  double rule_bytes() const {
    double bytes = 0;
    for (const StepVariable& use : variables) bytes += use.rule_bytes;
    return bytes;
  }
};

/// The time on a core that tasks take to send, receive and wake.
struct TransportCosts {
  double send_s_per_byte = 0.25e-9, receive_s_per_byte = 0.35e-9;  // tcp
  double cipher_s_per_byte = 0;  // added at each end of an encrypted stream
  double frame_s = 2e-6;         // for each frame, at each end
  double shared_frame_s = 3e-6;  // the time of each end for a frame in shared memory
  // The time of each end for a byte of values that is sent through shared memory.
  double ring_s_per_byte = 0.15e-9;
  /// The time in which the thread that makes a step hands over each message of a contribution
  /// (tcp): steps of resnet, which has hundreds of these messages, took 7 to 18 ms longer than the
  /// device alone.
  double hand_over_s = 20e-6;
  /// When several contributions are summed, they are read at this share of the rules' rate: runs of
  /// mlp in rounds fit 0.44 to 0.5.
  double contributions_of_rules = 0.46;
  /// Returns the bytes of a rule's pass that takes as long as reading this many contributions, of
  /// `bytes` bytes each, for their sum.
  double bytes_to_sum(double bytes, double contributions) const {
    return bytes * contributions / contributions_of_rules;
  }
  // The time of each end for messages that are sent together, beside that of their frames: the call
  // that sends or receives them, and the switch to the thread that waits for them.
  double message_s = 0, shared_message_s = 0;
  // The time until a sleeping thread continues.
  double wake_s = 30e-6, shared_wake_s = 30e-6;
  double step_s = 100e-6;  // the time of a step of several tasks, beside kernels and messages
  /// The time of a step of one process outside kernels: reports of mlp, whose steps take 0.19 ms,
  /// suggest 1 to 3 us.
  double alone_step_s = 3e-6;
  /// The most bytes per second that one stream moves, even if its link allows more; 0: no limit.
  double stream_bytes_per_s = 0;
  /// The time in which a ps handles one variable's message and its answer, one variable after
  /// another; 0: its cores decide.
  double serial_message_s = 0;
  /// The bytes of a stream that the system buffers before its sender waits.
  double socket_bytes = 1 << 20;
  /// The bytes of one stream that pass a shared link before those of another.
  double quantum = 64 * 1024;
  bool operator==(const TransportCosts&) const = default;
};

struct SimulatedCluster {
  std::vector<SimulatedMachine> machines = {};
  std::vector<SimulatedHost> hosts = {};
  // Pairs of hosts about which more is known than their links.
  std::vector<SimulatedPair> pairs = {};
  std::vector<int> ps = {}, workers = {};  // the host of each task
  bool share_memory = true;                // tasks of one host share memory
  Tls tls = Tls::kOffHost;                 // which streams are encrypted
  int ps_threads = 0;  // the threads of each ps; 0: one for each core of its machine
  /// By worker: the factor by which its device is slower than the step says; empty: none is slower.
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
  std::int64_t warm_steps = 5;  // of each worker, not counted
  std::int64_t steps = 20;      // of each worker, counted
  std::uint64_t seed = 1;
  std::function<bool()> gives_up = {};  // asked from time to time; empty: never
};

/// Throws kInvalidArgument for an unknown strategy.
const StrategyKind& kind_of(const SimulatedJob& job);
/// The options of local steps.
OuterOptions outer_options_of(const SimulatedJob& job);

/// Where the time of the counted steps went.
struct SimulatedUse {
  // The shares of all workers' time: on the device; in waits for values, for the answer to a step,
  // and for others; and in rules.
  double device = 0, values = 0, answer = 0, others = 0, rules = 0;
  std::vector<double> sent = {}, received = {};  // bytes per second, by host
  std::vector<double> carried = {};              // bytes per second, by pair of hosts
  std::vector<double> cores = {};     // for each machine: the busy share of all its cores
  std::vector<double> memory = {};    // busy share, by machine
  std::vector<double> moved = {};     // bytes per second of its memory
  std::vector<double> applying = {};  // by ps: the share of time in which it applies rules
};

struct SimulatedSpeed {
  double steps_per_s = 0;            // of all workers together
  std::vector<double> workers = {};  // of each worker
  SimulatedUse use = {};
  std::uint64_t events = 0;
};

}  // namespace paceline
