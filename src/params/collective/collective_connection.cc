#include "params/collective/collective_connection.h"

#include <fmt/format.h>

#include "params/collective/collective_driver.h"
#include "params/wire/message.h"

namespace paceline {

std::span<std::byte> CollectiveConnection::place_payload(const FrameHeader& header) {
  const std::size_t most = worker < 0 ? kMaxHelloBytes : kMaxControlBytes;
  if (header.payload_bytes > most) {
    throw Error(ErrorCode::kDataLoss,
                fmt::format("[all-reduce] {} of {} bytes is too long",
                            name_of(MessageType{header.type}), header.payload_bytes));
  }
  if (received_.size() < header.payload_bytes) received_.resize(header.payload_bytes);
  return std::span(received_).first(header.payload_bytes);
}

void CollectiveConnection::on_frame(const FrameHeader& header, std::span<const std::byte> payload) {
  driver_.received(*this, header, payload);
}

void CollectiveConnection::on_shared(std::uint32_t id, std::shared_ptr<const SharedMemory> memory) {
  driver_.shared(*this, id, std::move(memory));
}

void CollectiveConnection::on_closed(const Error& error) {
  closed = true;
  driver_.closed(*this, error);
}

}  // namespace paceline
