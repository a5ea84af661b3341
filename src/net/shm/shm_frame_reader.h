// Cuts the bytes of a ring into frames, and into the memories that are shared between frames.
#pragma once

#include <span>
#include <string>

#include "net/link.h"
#include "net/shm/shm_ring.h"
#include "net/shm/shm_sleep.h"
#include "net/shm/shm_socket.h"
#include "net/wrapped/traffic_meter.h"

namespace paceline {

/// Replaces a frame's magic in a ring if memory is shared. The header's id names the memory, whose
/// descriptor arrives over the Unix socket.
constexpr std::uint32_t kSharedMagic = 0x4d4e4c50;  // "PLNM" in bytes

/// Not thread-safe.
class ShmFrameReader {
 public:
  ShmFrameReader(const ShmPair& pair, ShmSleep& sleep, TrafficMeter& meter)
      : ring_(pair), sleep_(sleep), meter_(meter) {}
  ~ShmFrameReader();

  /// Reads what has arrived, but not for long, and calls the receiver. Returns false if nothing had
  /// arrived. Throws what the receiver throws, and kDataLoss for impossible bytes.
  bool turn(Receiver& receiver, ShmSocket& socket);
  const ShmReader& ring() const { return ring_; }
  /// Any thread may ask.
  bool has_data() const { return ring_.has_data(); }
  /// Any thread may ask.
  bool in_message() const { return in_payload_; }
  /// Returns a text such as "in the middle of a message (10 of 100 bytes)"; empty between two
  /// frames.
  std::string position() const;

 private:
  bool step(Receiver& receiver, ShmSocket& socket, std::size_t available);
  void begin_frame(Receiver& receiver, std::span<const std::byte, kFrameHeaderBytes> bytes);
  void read_payload(Receiver& receiver, std::size_t available);
  void end_frame(Receiver& receiver);
  void give_back_room();

  ShmReader ring_;
  ShmSleep& sleep_;
  TrafficMeter& meter_;
  std::atomic<bool> in_payload_{false};
  FrameHeader header_;
  std::span<std::byte> place_;
  std::size_t placed_ = 0;
};

}  // namespace paceline
