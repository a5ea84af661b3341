#include "net/shm/shm_frame_reader.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "net/received_frame.h"

namespace paceline {
namespace {

// The reader gives the ring's room back after each piece of this size, so that the peer writes
// while this side reads on.
constexpr std::size_t kReadPiece = 64 << 10;
constexpr std::size_t kReadTurnBytes = 8 << 20;

bool is_shared(std::span<const std::byte, kFrameHeaderBytes> bytes) {
  std::uint32_t magic = 0;
  std::memcpy(&magic, bytes.data(), sizeof magic);
  return magic == kSharedMagic;
}

std::uint32_t id_of_shared(std::span<const std::byte, kFrameHeaderBytes> bytes) {
  std::uint32_t id = 0;
  std::memcpy(&id, bytes.data() + 12, sizeof id);
  return id;
}

}  // namespace

ShmFrameReader::~ShmFrameReader() {
  if (in_payload_) meter_.end_copy(place_.size());
}

bool ShmFrameReader::turn(Receiver& receiver, ShmSocket& socket) {
  const std::uint64_t begin = ring_.tail();
  do {
    if (!step(receiver, socket, ring_.available())) break;
  } while (ring_.has_data() && ring_.tail() - begin < kReadTurnBytes);
  return ring_.tail() != begin;
}

/// Reads a frame's header and the part of its payload that has arrived, the next part of a payload,
/// or a shared memory. Returns false if the ring is empty.
bool ShmFrameReader::step(Receiver& receiver, ShmSocket& socket, std::size_t available) {
  if (available == 0) return false;
  if (in_payload_) {
    read_payload(receiver, available);
    return true;
  }
  if (available < kFrameHeaderBytes)
    throw Error(ErrorCode::kDataLoss, "a frame's header came in pieces");
  std::array<std::byte, kFrameHeaderBytes> bytes;
  ring_.read(bytes);
  if (!is_shared(bytes)) {
    begin_frame(receiver, bytes);
    read_payload(receiver, available - bytes.size());
    return true;
  }
  // When the writer sees this room, it knows that the peer has taken the memory, so that it may
  // pass another one.
  std::shared_ptr<const SharedMemory> memory = socket.take();
  give_back_room();
  receiver.on_shared(id_of_shared(bytes), std::move(memory));
  return true;
}

void ShmFrameReader::begin_frame(Receiver& receiver,
                                 std::span<const std::byte, kFrameHeaderBytes> bytes) {
  header_ = decode(bytes, kMaxPayloadBytes);
  place_ = checked_place(receiver, header_);
  placed_ = 0;
  in_payload_ = true;
  meter_.begin_copy(place_.size());
}

void ShmFrameReader::read_payload(Receiver& receiver, std::size_t available) {
  const std::size_t end = placed_ + std::min(available, place_.size() - placed_);
  while (placed_ < end) {
    const std::size_t piece = std::min(kReadPiece, end - placed_);
    ring_.read(place_.subspan(placed_, piece));
    placed_ += piece;
    if (placed_ < end) give_back_room();
  }
  const bool takes_room = !ring_.is_beside_head();
  if (takes_room) give_back_room();
  if (placed_ == place_.size()) end_frame(receiver);
  // Comes last, because a short answer by the receiver has already told the peer (ShmBlock::read).
  if (!takes_room) give_back_room();
}

void ShmFrameReader::end_frame(Receiver& receiver) {
  in_payload_ = false;
  meter_.count_received(kFrameHeaderBytes + place_.size());
  meter_.end_copy(place_.size());
  receiver.on_frame(header_, place_);
}

void ShmFrameReader::give_back_room() {
  ring_.release();
  if (ring_.is_half_free()) sleep_.wake_peer(ShmSleep::kRoom);
}

std::string ShmFrameReader::position() const {
  if (!in_payload_) return "";
  return "in the middle of a message (" + std::to_string(placed_) + " of " +
         std::to_string(place_.size()) + " bytes)";
}

}  // namespace paceline
