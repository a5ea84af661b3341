#include "params/protocol/testing/virtual_network.h"

#include <algorithm>
#include <utility>

namespace paceline {

using namespace std::chrono_literals;

void VirtualNetwork::set_ends(std::function<void(PeerId)> ps, std::function<void(PeerId)> worker) {
  ps_sees_end_ = std::move(ps);
  worker_sees_end_ = std::move(worker);
}

PeerId VirtualNetwork::connect(int worker, int ps, std::uint64_t incarnation) {
  const VirtualLink link(time_, options_.bytes_per_s);
  ++made_;
  wires_.emplace(made_, VirtualWire{.worker = worker,
                                    .ps = ps,
                                    .incarnation = incarnation,
                                    .peer = made_,
                                    .to_ps = link,
                                    .to_worker = link});
  return made_;
}

Duration VirtualNetwork::delay() {
  return time_.happens(0.02) ? time_.between(1ms, 300ms) : time_.between(50us, 5ms);
}

// True for a message that is lost. A stream does not go on without it.
bool VirtualNetwork::loses(PeerId id, TimePoint& until) {
  if (options_.losses == 0 || !time_.happens(options_.losses)) return false;
  ++lost_;
  if (options_.plant == VirtualOptions::Plant::kLossGoesOn) return true;
  cut(id, 1s);
  until = time_.now();
  return true;
}

std::function<void()> VirtualNetwork::unless_lost(PeerId id, TimePoint VirtualWire::*until,
                                                  std::function<void()> arrived) {
  return [this, id, until, arrived = std::move(arrived)] {
    if (time_.now() > wire(id).*until) return void(++lost_);
    arrived();
  };
}

void VirtualNetwork::to_ps(PeerId id, std::size_t bytes, std::function<void()> arrived) {
  VirtualWire& it = wire(id);
  if (loses(id, it.to_ps_until)) return;
  it.to_ps.send(bytes, delay(), {}, unless_lost(id, &VirtualWire::to_ps_until, std::move(arrived)));
}

void VirtualNetwork::to_worker(PeerId id, std::size_t bytes, std::function<void()> sent,
                               std::function<void()> arrived) {
  VirtualWire& it = wire(id);
  if (loses(id, it.to_worker_until)) arrived = [] {};
  it.to_worker.send(bytes, delay(), std::move(sent),
                    unless_lost(id, &VirtualWire::to_worker_until, std::move(arrived)));
}

void VirtualNetwork::cut(PeerId id, Duration noticed) {
  VirtualWire& it = wire(id);
  if (std::exchange(it.cut, true)) return;
  const Duration ps = time_.between(Duration(0), noticed);
  const Duration worker = time_.between(Duration(0), noticed);
  // One way may still work for a while.
  it.to_ps_until = time_.now() + (time_.happens(0.5) ? time_.between(Duration(0), ps) : 0ns);
  it.to_worker_until =
      time_.now() + (time_.happens(0.5) ? time_.between(Duration(0), worker) : 0ns);
  time_.after(ps, [this, id] { ps_sees_end_(id); });
  time_.after(worker, [this, id] { worker_sees_end_(id); });
}

void VirtualNetwork::cut_after_last_to_worker(PeerId id) {
  time_.at(wire(id).to_worker.last_arrival(), [this, id] { cut(id, Duration(0)); });
}

void VirtualNetwork::cut_after_last_to_ps(PeerId id) {
  time_.at(wire(id).to_ps.last_arrival() + 1ms, [this, id] { cut(id, 1ms); });
}

}  // namespace paceline
