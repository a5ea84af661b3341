// Fills a stream for some time.
#pragma once

#include <memory>
#include <stop_token>
#include <thread>

#include "net/link.h"

namespace paceline {

/// Sends frames of bytes over a connection for a given time. Each frame is sent as soon as the
/// system has taken an earlier one, and at last the message kFilled. The destructor ends this
/// sooner.
class StreamPump {
 public:
  StreamPump(std::shared_ptr<Connection> to, Duration duration);

  /// Ends it earlier, without waiting for it.
  void stop() { thread_.request_stop(); }

 private:
  std::jthread thread_;
};

}  // namespace paceline
