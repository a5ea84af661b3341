#include "params/ps/coordinator_connection.h"

#include <fmt/format.h>

#include <utility>

#include "params/ps/ps_driver.h"

namespace paceline {

CoordinatorConnection::CoordinatorConnection(PsDriver& driver)
    : driver_(driver), stream_(*this), inlet_(stream_) {}

void CoordinatorConnection::connect(Link& link, const std::string& address, Deadline deadline) {
  stream_.open(link.connect(address, inlet_, deadline));
}

void CoordinatorConnection::send(const ControlMessage& message) {
  auto payload = std::make_unique<const std::vector<std::byte>>(encode(message));
  const std::span<const std::byte> bytes = *payload;
  const FrameHeader header{.type = std::uint16_t(message.type), .step = message.step};
  stream_.send(
      header, bytes, [](void* sent) { delete static_cast<const std::vector<std::byte>*>(sent); },
      const_cast<std::vector<std::byte>*>(payload.release()));
}

std::span<std::byte> CoordinatorConnection::place_payload(const FrameHeader& header) {
  if (header.payload_bytes > kMaxControlBytes) {
    throw Error(ErrorCode::kDataLoss,
                fmt::format("[ps] {} of {} bytes from ps:0 is too long",
                            name_of(MessageType{header.type}), header.payload_bytes));
  }
  if (received_.size() < header.payload_bytes) received_.resize(header.payload_bytes);
  return std::span(received_).first(header.payload_bytes);
}

void CoordinatorConnection::on_frame(const FrameHeader& header,
                                     std::span<const std::byte> payload) {
  check_flags(header);
  const MessageType type{header.type};
  if (!is_control_from_coordinator(type)) {
    throw Error(ErrorCode::kDataLoss, "[ps] unexpected message " + name_of(type) + " from ps:0");
  }
  driver_.from_coordinator(decode_control(type, payload, header.step));
}

void CoordinatorConnection::on_closed(const Error&) {
  driver_.coordinator_closed(stream_.handled());
}

}  // namespace paceline
