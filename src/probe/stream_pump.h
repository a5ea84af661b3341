// Fills a stream for some time.
#pragma once

#include <memory>
#include <stop_token>
#include <thread>

#include "net/link.h"

namespace paceline {

/// Sends frames of bytes over a connection for a given time, and then the message kFilled. Each
/// frame is sent as soon as the system has taken an earlier one. If the destructor or stop() ends
/// the pump sooner, it does not send kFilled.
class StreamPump {
 public:
  StreamPump(std::shared_ptr<Connection> to, Duration duration);

  /// Ends the pump, without waiting for it.
  void stop() { thread_.request_stop(); }

 private:
  std::jthread thread_;
};

}  // namespace paceline
