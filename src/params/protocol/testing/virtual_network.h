// The connections of a virtual job.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "base/virtual_time.h"
#include "params/protocol/outbox.h"
#include "params/protocol/testing/virtual_job.h"
#include "params/protocol/testing/virtual_link.h"

namespace paceline {

/// One connection of a worker's process, or of another ps, to a ps.
struct VirtualWire {
  int worker = 0, ps = 0;  // worker: −i is ps i

  std::uint64_t incarnation = 0;
  PeerId peer = 0;  // the name of the worker's process in the machine of the ps
  VirtualLink to_ps, to_worker;
  bool worker_open = true, ps_open = true;  // what each end knows
  bool cut = false;
  // Once it is cut, a message that would arrive later than this is lost.
  TimePoint to_ps_until = TimePoint::max(), to_worker_until = TimePoint::max();
};

/// Delays messages at random, keeps their order on each connection, and cuts connections.
class VirtualNetwork {
 public:
  VirtualNetwork(VirtualTime& time, const VirtualOptions& options)
      : time_(time), options_(options) {}
  /// Sets the functions that hear of the end of a connection.
  void set_ends(std::function<void(PeerId)> ps, std::function<void(PeerId)> worker);

  /// Returns the connection, whose `peer` has its number at first.
  PeerId connect(int worker, int ps, std::uint64_t incarnation);
  VirtualWire& wire(PeerId id) { return wires_.at(id); }
  const std::map<PeerId, VirtualWire>& wires() const { return wires_; }

  Duration delay();
  void to_ps(PeerId id, std::size_t bytes, std::function<void()> arrived);
  /// Sends to the worker. `sent` may be empty. It is called even if the connection is cut.
  void to_worker(PeerId id, std::size_t bytes, std::function<void()> sent,
                 std::function<void()> arrived);
  /// Cuts the connection. Each end learns of it within `noticed`. Some of the messages that are on
  /// their way still arrive.
  void cut(PeerId id, Duration noticed);
  /// Cut the connection once the messages that were sent to the worker, or to the ps, have arrived.
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

}  // namespace paceline
