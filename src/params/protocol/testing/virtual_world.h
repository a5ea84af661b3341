// The state that the tasks of a virtual job share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/virtual_time.h"
#include "net/frame.h"
#include "paceline/task_position.h"
#include "params/protocol/outbox.h"
#include "params/protocol/record_set.h"
#include "params/protocol/step_assembly.h"
#include "params/protocol/testing/virtual_job.h"
#include "params/protocol/testing/virtual_link.h"

namespace paceline {

/// One connection of a worker's process, or of another ps, to a ps.
struct VirtualWire {
  int worker = 0, ps = 0;  // worker: −i means ps i

  std::uint64_t incarnation = 0;
  PeerId peer = 0;  // the number of the worker's process in the ps's state machine
  VirtualLink to_ps, to_worker;
  // False once that end knows that the connection has ended.
  bool worker_open = true, ps_open = true;
  bool cut = false;
  // If the connection was cut: messages that would arrive later than this time are lost.
  TimePoint to_ps_until = TimePoint::max(), to_worker_until = TimePoint::max();
};

/// The connections of a virtual job. Delays messages at random, keeps their order on each
/// connection, and cuts connections.
class VirtualNetwork {
 public:
  VirtualNetwork(VirtualTime& time, const VirtualOptions& options)
      : time_(time), options_(options) {}
  /// Sets the functions that are called when a connection ends.
  void set_ends(std::function<void(PeerId)> ps, std::function<void(PeerId)> worker);

  /// Makes a connection, and returns its number, which is the value of `peer` at first.
  PeerId connect(int worker, int ps, std::uint64_t incarnation);
  VirtualWire& wire(PeerId id) { return wires_.at(id); }
  const std::map<PeerId, VirtualWire>& wires() const { return wires_; }

  Duration delay();
  void to_ps(PeerId id, std::size_t bytes, std::function<void()> arrived);
  /// Sends to the worker. `sent` may be empty; it is called even if the connection is cut.
  void to_worker(PeerId id, std::size_t bytes, std::function<void()> sent,
                 std::function<void()> arrived);
  /// Cuts the connection. Each end learns of that within `noticed`. Some of the messages under way
  /// still arrive.
  void cut(PeerId id, Duration noticed);
  /// Cuts the connection once the messages that were sent to the worker have arrived. The next
  /// function waits for the messages to the ps instead.
  void cut_after_last_to_worker(PeerId id);
  void cut_after_last_to_ps(PeerId id);
  std::int64_t lost() const { return lost_; }

 private:
  bool loses(PeerId id, TimePoint& until);
  std::function<void()> unless_lost(PeerId id, TimePoint VirtualWire::*until,
                                    std::function<void()> arrived);

  VirtualTime& time_;
  const VirtualOptions& options_;
  std::function<void(PeerId)> ps_sees_end_, worker_sees_end_;
  PeerId made_ = 0;
  std::map<PeerId, VirtualWire> wires_;
  std::int64_t lost_ = 0;
};

/// One step of one worker's process on one ps.
struct VirtualStep {
  int worker = 0;
  std::uint64_t incarnation = 0;
  std::int64_t step = 0;
  int ps = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy sees a 0 in what the compiler writes.
  auto operator<=>(const VirtualStep&) const = default;
};

/// Keeps notes of a virtual job, and checks its invariants.
class VirtualChecks {
 public:
  VirtualChecks(const VirtualTime& time, const VirtualOptions& options)
      : time_(time), options_(options) {}

  void fail(const std::string& why);
  VirtualResult& result() { return result_; }

  // Contributions.
  void applied(const VirtualStep& step, std::uint32_t piece, Cut part);
  void ended(const VirtualStep& step);
  /// Checks that a step has ended on the ps that has told the worker that the step counts.
  void told(const VirtualStep& step);
  /// A ps has closed the round and sums these contributions; `coordinator` is the process of ps 0
  /// that decided so. All ps tasks must sum the same contributions, in the same order.
  void closed(int ps, std::uint64_t coordinator, std::int64_t round,
              const std::vector<VirtualStep>& sums);
  /// Only in rounds: notes that the worker was sent the values that the ps has after this many
  /// rounds.
  void read(int worker, std::uint64_t incarnation, int ps, std::int64_t rounds);
  /// Checks, for a contribution that counts, that the worker's values were of the same round on all
  /// ps tasks.
  void check_read(int worker, std::uint64_t incarnation);
  /// Returns the number of the worker's own steps that have ended on ps 0.
  std::int64_t ended_on_first(int worker) const;
  /// Call it when training continues from a checkpoint, with these next own steps by worker.
  void goes_back(std::span<const std::int64_t> own_steps);
  /// Checks at the end of the run that no byte was applied twice, and that every byte of a step
  /// that has ended was applied.
  void check_contributions(int ps, std::span<const AssemblyTarget> targets);

  // Records that are shared out.
  /// Notes that the worker makes its step from these records.
  void reads(int worker, std::uint64_t incarnation, std::int64_t step,
             const std::vector<RecordRange>& records);
  const std::set<std::int64_t>& used_records() const { return used_; }
  void set_used_records(std::set<std::int64_t> used) { used_ = std::move(used); }

  // Replies of one connection.
  void set_order(PeerId id, std::span<const std::uint32_t> pieces);
  void pushed(PeerId id, std::uint32_t piece, std::size_t bytes);
  /// Notes that the connection was given the reply. Checks that no reply that is needed sooner
  /// waits, and that the connection has no more than its window.
  void given(PeerId id, std::uint32_t piece, std::size_t bytes);
  void sent(PeerId id, std::size_t bytes);

  // Workers.
  void waited(int worker, Duration time);
  void began_ahead(std::int64_t steps);

 private:
  struct Replies {
    std::map<std::uint32_t, std::size_t> ranks;         // by piece
    std::map<std::size_t, std::int64_t> waiting;        // by rank: how many replies wait
    std::size_t in_connection = 0, connection_has = 0;  // bytes; replies
  };
  static std::size_t rank(const Replies& replies, std::uint32_t piece);

  const VirtualTime& time_;
  const VirtualOptions& options_;
  VirtualResult result_;
  /// The parts that were applied, by piece and first byte. Two parts with the same first byte are a
  /// fault.
  std::map<VirtualStep, std::map<std::uint32_t, std::multimap<std::size_t, std::size_t>>> applied_;
  std::set<VirtualStep> ended_;
  std::map<int, std::int64_t> ended_on_first_;  // by worker
  /// The contributions to each sum, by the process of ps 0 and the round.
  std::map<std::pair<std::uint64_t, std::int64_t>, std::vector<VirtualStep>> rounds_;
  /// The rounds of the values that a worker's process has, by ps.
  std::map<std::pair<int, std::uint64_t>, std::map<int, std::int64_t>> read_;
  std::map<PeerId, Replies> replies_;
  void use_records(const VirtualStep& step);
  std::map<VirtualStep, std::vector<RecordRange>> read_records_;
  std::set<std::int64_t> given_, used_;
};

class VirtualPs;
class VirtualWorker;

struct VirtualWorld {
  explicit VirtualWorld(const VirtualOptions& options);
  ~VirtualWorld();
  VirtualWorld(const VirtualWorld&) = delete;
  VirtualWorld& operator=(const VirtualWorld&) = delete;

  bool in_rounds() const { return options.aggregation.kind == AggregationKind::kRounds; }
  // Call these when a worker or another ps, at the far end of a connection to a ps, has received a
  // message.
  void caller_received(PeerId wire, const ControlMessage& message);
  void caller_confirmed(PeerId wire, std::uint64_t handled);
  void caller_closed(PeerId wire);

  bool planted(VirtualOptions::Plant plant) const { return options.plant == plant; }
  /// Returns the pieces on one ps, in the order in which workers need them: the last variable
  /// first.
  std::vector<AssemblyTarget> needed_from(int ps) const;

  const VirtualOptions options;
  VirtualTime time;
  VirtualChecks checks;
  VirtualNetwork network;
  Declare declare;
  /// The newest checkpoint.
  struct Checkpoint {
    std::int64_t global_step = 0;
    std::vector<std::int64_t> own_steps;  // by worker
    RecordSet unused = {};                // if records are shared out
    std::set<std::int64_t> used = {};
  } checkpoint;
  std::vector<std::unique_ptr<VirtualPs>> ps;
  std::vector<std::unique_ptr<VirtualWorker>> workers;
};

/// About the size of a control message in bytes, its header included.
constexpr std::size_t kVirtualControlBytes = 100;

}  // namespace paceline
