// Hosts, each joined by a link to a switch, in virtual time. Streams share the links unevenly, and
// their shares change. Each stream has a window of bytes under way, and bytes arrive late by the
// links' delay. Between two hosts the path may be narrower than their links.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "base/virtual_time.h"

namespace paceline {

struct SimulatedHost {
  int machine = 0;                 // the machine whose cores and memory it uses
  double link_bytes_per_s = 0;     // payload, each way; 0: no limit
  double latency_s = 0;            // delay of its link, one way
  double receive_bytes_per_s = 0;  // payload that it receives; 0: link_bytes_per_s

  double receives_per_s() const {
    return receive_bytes_per_s > 0 ? receive_bytes_per_s : link_bytes_per_s;
  }
};

/// The traffic from one host to another.
struct SimulatedPair {
  int from = 0, to = 0;
  double bytes_per_s = 0;         // the payload of all streams together; 0: only the links limit it
  double stream_bytes_per_s = 0;  // payload of one stream; 0: bytes_per_s
  double latency_s = 0;           // the delay in one direction; 0: the delay of both links together
  bool operator==(const SimulatedPair&) const = default;
};

class LinkNetwork {
 public:
  /// `quantum` is how many bytes of one stream a link carries before it carries bytes of another
  /// stream.
  LinkNetwork(VirtualTime& time, const std::vector<SimulatedHost>& hosts, double quantum,
              std::span<const SimulatedPair> pairs = {});
  LinkNetwork(const LinkNetwork&) = delete;
  LinkNetwork& operator=(const LinkNetwork&) = delete;

  /// Returns the number of a new stream from one host to another.
  int open(int from, int to);
  /// Queues bytes. Calls `arrived` when the last byte has arrived.
  void send(int stream, double bytes, std::function<void()> arrived);
  /// Returns the bytes that have not left the sending host.
  double waiting(int stream) const { return streams_[std::size_t(stream)].queued; }
  /// Sets the function to call when a part of the stream has left the sending host.
  void set_on_left(int stream, std::function<void()> left) {
    streams_[std::size_t(stream)].left = std::move(left);
  }

  // The bytes that each host has sent and received until now, in host order.
  const std::vector<double>& sent() const { return sent_; }
  const std::vector<double>& received() const { return received_; }
  // The bytes that each pair has carried until now, in pair order.
  const std::vector<double>& carried() const { return carried_; }

 private:
  struct Queued {
    /// The bytes still to be sent, and the weight of this message beside those of other streams.
    double bytes = 0, share = 1;
    std::function<void()> arrived;
  };
  /// A bottleneck, through which bytes pass one after another. A rate of 0 stands for no limit.
  struct Narrow {
    double bytes_per_s = 0;
    TimePoint free_at{};
  };
  struct Stream {
    int from = 0, to = 0;
    int pair = -1;  // index into pairs_; -1: none
    Duration late{};
    Narrow own = {};
    std::deque<Queued> queue = {};
    double window = 0, queued = 0, under_way = 0;
    bool waits = false;  // the stream is in its host's list of waiting streams
    std::function<void()> left = {};
  };
  struct Way {
    double bytes_per_s = 0;
    std::deque<int> streams = {};  // streams with bytes to send, in turn
    bool busy = false;
    TimePoint free_at{};
  };
  /// Bytes that leave a host at once, and the messages that they complete.
  struct Part {
    int stream = 0;
    double bytes = 0;
    std::vector<std::function<void()>> arrived = {};
  };
  void consider(int stream);
  void send_next(int host);
  Part take_part(int stream);
  void pass(Part part, TimePoint first, TimePoint last);
  void arrive(Part part, TimePoint first, TimePoint last);

  VirtualTime& time_;
  const double quantum_;
  std::vector<double> latency_;
  std::vector<Way> out_, in_;  // by host
  std::vector<SimulatedPair> pairs_;
  std::map<std::pair<int, int>, int> pair_of_;  // by the pair's two hosts
  std::vector<Narrow> narrows_;                 // of each pair
  std::vector<Stream> streams_;
  std::vector<double> sent_, received_, carried_;
  std::mt19937_64 random_{1};
  std::normal_distribution<> normal_;
};

}  // namespace paceline
