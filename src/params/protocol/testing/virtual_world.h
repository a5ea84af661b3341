// The state that the tasks of a virtual job share.
#pragma once

#include <memory>
#include <set>
#include <vector>

#include "base/virtual_time.h"
#include "params/protocol/record_set.h"
#include "params/protocol/testing/virtual_checks.h"
#include "params/protocol/testing/virtual_job.h"
#include "params/protocol/testing/virtual_network.h"

namespace paceline {

class VirtualPs;
class VirtualWorker;

struct VirtualWorld {
  explicit VirtualWorld(const VirtualOptions& options);
  ~VirtualWorld();
  VirtualWorld(const VirtualWorld&) = delete;
  VirtualWorld& operator=(const VirtualWorld&) = delete;

  bool in_rounds() const { return options.aggregation.kind == AggregationKind::kRounds; }
  // The far end of a connection to a ps: a worker, or another ps.
  void caller_received(PeerId wire, const ControlMessage& message);
  void caller_confirmed(PeerId wire, std::uint64_t handled);
  void caller_closed(PeerId wire);

  bool planted(VirtualOptions::Plant plant) const { return options.plant == plant; }
  /// Pieces on one ps, in the order in which workers need them: the last variable first.
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
    RecordSet unused = {};                // where records are shared out
    std::set<std::int64_t> used = {};
  } checkpoint;
  std::vector<std::unique_ptr<VirtualPs>> ps;
  std::vector<std::unique_ptr<VirtualWorker>> workers;
};

/// A frame with this in its header is a control message of about so many bytes.
constexpr std::size_t kVirtualControlBytes = 100;

}  // namespace paceline
