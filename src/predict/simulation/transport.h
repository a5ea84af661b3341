// The streams of frames between tasks of a simulated job. Each frame takes time on the cores of its
// sender and its receiver, and passes the links between their hosts.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "base/virtual_time.h"
#include "predict/simulation/link_network.h"
#include "predict/simulation/machine_share.h"
#include "predict/simulation/simulated_frame.h"
#include "predict/simulation/simulated_job.h"

namespace paceline {

class Transport {
 public:
  Transport(VirtualTime& time, const SimulatedCluster& cluster, const TransportCosts& costs);

  /// Opens a stream in one direction between tasks on these hosts. Frames that arrive go to
  /// `receiver`, which knows the stream as `name`.
  int open(int from, int to, FrameReceiver& receiver, int name);
  /// Queues a frame.
  void send(int stream, SimulatedFrame frame);
  /// Sets a function that is called when the system has taken some frames, with the bytes that the
  /// values among them take as they travel.
  void set_on_sent(int stream, std::function<void(std::size_t bytes)> sent) {
    streams_[std::size_t(stream)].sent = std::move(sent);
  }
  /// True if both ends share memory.
  bool shared(int stream) const { return streams_[std::size_t(stream)].shared; }
  /// Returns the core time that receiving the frame takes.
  double receive_seconds(int stream, const SimulatedFrame& frame) const;

  MachineShare& machine_of(int host) {
    return *machines_[std::size_t(cluster_.hosts[std::size_t(host)].machine)];
  }
  const std::vector<std::unique_ptr<MachineShare>>& machines() const { return machines_; }
  const LinkNetwork& network() const { return network_; }

 private:
  struct Stream {
    int from = 0, to = 0, network = -1;  // network −1: both ends are on one host
    bool shared = false, sending = false;
    double cipher_s_per_byte = 0;
    FrameReceiver* receiver = nullptr;
    int name = 0;
    std::deque<SimulatedFrame> queue = {};
    std::function<void(std::size_t)> sent = {};
    TimePoint free_at{};
  };
  void send_some(int stream);
  void sent(int stream, std::vector<SimulatedFrame> frames);
  void deliver(int stream, std::vector<SimulatedFrame> frames);

  VirtualTime& time_;
  const SimulatedCluster& cluster_;
  const TransportCosts& costs_;
  std::vector<std::unique_ptr<MachineShare>> machines_;
  LinkNetwork network_;
  std::vector<Stream> streams_;
};

}  // namespace paceline
