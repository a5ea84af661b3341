#include "net/shm/shm_handshake.h"

#include "net/connection_end.h"
#include "net/poll/poll_until.h"
#include "net/shm/unix_socket.h"
#include "paceline/error.h"

namespace paceline {

bool introduce(int socket, const Preamble::Token& token, const SharedMemory& memory) {
  const auto bytes = encode(Preamble{SocketRole::kSharedMemory, token});
  return send_message(socket, {reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                      memory.fd());
}

std::shared_ptr<const SharedMemory> take_introduction(int socket, const Preamble::Token& token) {
  UnixMessage message = receive_message(socket, kPreambleBytes);
  if (message.outcome == UnixMessage::Outcome::kNothing) return nullptr;
  if (message.outcome == UnixMessage::Outcome::kClosed)
    throw Error(ErrorCode::kUnavailable, "closed the connection or died");
  if (message.text.size() != kPreambleBytes || !message.passed)
    throw Error(ErrorCode::kDataLoss, "sent garbage instead of its memory");
  const Preamble preamble =
      decode_preamble(std::as_bytes(std::span(message.text)).first<kPreambleBytes>());
  if (preamble.role != SocketRole::kSharedMemory || preamble.token != token)
    throw Error(ErrorCode::kDataLoss, "does not know the token that was offered");
  auto memory = SharedMemory::open(std::move(message.passed));
  if (memory->size() != kShmMemoryBytes)
    throw Error(ErrorCode::kDataLoss, "shares " + std::to_string(memory->size()) +
                                          " bytes where a ring has " +
                                          std::to_string(kShmMemoryBytes));
  return memory;
}

std::optional<ShmReached> reach(const Offer& offer, const std::string& address, Deadline deadline) {
  std::optional<FileDescriptor> socket = dial_abstract(offer.socket_name(), deadline);
  if (!socket || !is_of_this_user(socket->get())) return std::nullopt;
  auto own = SharedMemory::create(kShmMemoryBytes);
  if (!introduce(socket->get(), offer.token, *own))
    throw Error(ErrorCode::kUnavailable, address + " closed the connection or died");
  while (true) {
    if (!wait_to_read(socket->get(), deadline)) throw error_of_silence(address);
    try {
      if (auto peers = take_introduction(socket->get(), offer.token))
        return ShmReached{std::move(*socket), std::move(own), std::move(peers)};
    } catch (const Error& error) {
      throw Error(error.code(), address + " " + error.what());
    }
  }
}

}  // namespace paceline
