#include "predict/simulation/transport.h"

#include <algorithm>
#include <utility>

#include "predict/simulation/virtual_seconds.h"

namespace paceline {
namespace {

// A sender hands the system several small frames at once, up to this many bytes.
constexpr std::size_t kBatchBytes = 256 * 1024;

double bytes_of(const std::vector<SimulatedFrame>& frames) {
  double bytes = 0;
  for (const SimulatedFrame& frame : frames) bytes += double(kFrameHeaderBytes + frame.wire_bytes);
  return bytes;
}

}  // namespace

Transport::Transport(VirtualTime& time, const SimulatedCluster& cluster,
                     const TransportCosts& costs)
    : time_(time),
      cluster_(cluster),
      costs_(costs),
      network_(time, cluster.hosts, costs.quantum, cluster.pairs) {
  for (const SimulatedMachine& machine : cluster.machines) {
    machines_.push_back(std::make_unique<MachineShare>(time, machine));
  }
}

int Transport::open(int from, int to, FrameReceiver& receiver, int name) {
  const int number = int(streams_.size());
  Stream stream{.from = from, .to = to, .receiver = &receiver, .name = name};
  stream.shared = from == to && cluster_.share_memory;
  if (from != to) {
    stream.network = network_.open(from, to);
    network_.set_on_left(stream.network, [this, number] { send_some(number); });
  }
  const bool encrypted =
      cluster_.tls == Tls::kAlways || (from != to && cluster_.tls == Tls::kOffHost);
  if (encrypted) stream.cipher_s_per_byte = costs_.cipher_s_per_byte;
  streams_.push_back(std::move(stream));
  return number;
}

void Transport::send(int stream, SimulatedFrame frame) {
  streams_[std::size_t(stream)].queue.push_back(std::move(frame));
  send_some(stream);
}

double Transport::receive_seconds(int stream, const SimulatedFrame& frame) const {
  if (streams_[std::size_t(stream)].shared) {
    return frame.messages * costs_.shared_frame_s + frame.unpack_s;
  }
  const double per_byte =
      costs_.receive_s_per_byte + streams_[std::size_t(stream)].cipher_s_per_byte;
  return frame.messages * costs_.frame_s + double(frame.wire_bytes) * per_byte + frame.unpack_s;
}

void Transport::send_some(int number) {
  Stream& stream = streams_[std::size_t(number)];
  if (stream.sending || stream.queue.empty()) return;
  if (stream.network >= 0 && network_.waiting(stream.network) >= costs_.socket_bytes) return;
  stream.sending = true;
  std::vector<SimulatedFrame> frames;
  std::size_t bytes = 0;
  double packing = 0;
  int messages = 0;
  while (!stream.queue.empty() && (frames.empty() || bytes < kBatchBytes)) {
    bytes += stream.queue.front().wire_bytes;
    packing += stream.queue.front().pack_s;
    messages += stream.queue.front().messages;
    frames.push_back(std::move(stream.queue.front()));
    stream.queue.pop_front();
  }
  const double together = stream.shared ? costs_.shared_message_s : costs_.message_s;
  frames.front().unpack_s += together;
  const double each = stream.shared ? costs_.shared_frame_s : costs_.frame_s;
  const double per_byte = stream.shared ? 0 : costs_.send_s_per_byte + stream.cipher_s_per_byte;
  const double call = frames.front().handed_over ? 0 : together;
  const SimulatedWork work{.core_seconds =
                               call + messages * each + double(bytes) * per_byte + packing};
  machine_of(stream.from).run(work, [this, number, frames = std::move(frames)]() mutable {
    sent(number, std::move(frames));
  });
}

void Transport::sent(int number, std::vector<SimulatedFrame> frames) {
  Stream& stream = streams_[std::size_t(number)];
  const double bytes = bytes_of(frames);
  std::size_t payload = 0;
  for (const SimulatedFrame& frame : frames) payload += frame.bytes > 0 ? frame.wire_bytes : 0;
  auto arrived = std::make_shared<std::vector<SimulatedFrame>>(std::move(frames));
  auto deliver_all = [this, number, arrived] { deliver(number, std::move(*arrived)); };
  // A slow transport moves a stream at a rate of its own.
  TimePoint free = time_.now();
  if (costs_.stream_bytes_per_s > 0) {
    stream.free_at =
        std::max(stream.free_at, time_.now()) + span_of(bytes / costs_.stream_bytes_per_s);
    free = stream.free_at;
  }
  time_.at(free, [this, number, bytes, payload, deliver_all] {
    Stream& it = streams_[std::size_t(number)];
    if (it.network >= 0) {
      network_.send(it.network, bytes, deliver_all);
    } else {
      time_.after(span_of(it.shared ? costs_.shared_wake_s : costs_.wake_s), deliver_all);
    }
    it.sending = false;
    if (it.sent) it.sent(payload);
    send_some(number);
  });
}

void Transport::deliver(int number, std::vector<SimulatedFrame> frames) {
  Stream& stream = streams_[std::size_t(number)];
  stream.receiver->arrived(stream.name, std::move(frames));
}

}  // namespace paceline
