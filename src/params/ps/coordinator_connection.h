// The connection of a ps to ps 0, which decides about rounds, over all connections that it takes.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "net/link.h"
#include "params/resumable_connection.h"
#include "params/wire/control_message.h"

namespace paceline {

class PsDriver;

class CoordinatorConnection : public Receiver {
 public:
  explicit CoordinatorConnection(PsDriver& driver);

  /// One try; throws what Link::connect throws.
  void connect(Link& link, const std::string& address, Deadline deadline);
  /// Sends a message, now or once there is a connection.
  void send(const ControlMessage& message);
  /// Numbered messages flow from now on.
  void go_on(std::uint64_t handled) { stream_.go_on(handled); }

  std::span<std::byte> place_payload(const FrameHeader& header) override;
  void on_frame(const FrameHeader& header, std::span<const std::byte> payload) override;
  void on_closed(const Error& error) override;

 private:
  PsDriver& driver_;
  std::vector<std::byte> received_;
  ResumableConnection stream_;
  Inlet inlet_;
};

}  // namespace paceline
