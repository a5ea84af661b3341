#include "probe/stream_pump.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>
#include <random>
#include <utility>

#include "probe/probe_messages.h"

namespace paceline {
namespace {

/// How many frames are passed to the system at a time, so that it always has one to send.
constexpr int kAtOnce = 3;

/// The state lives as long as the pump, and as long as the connection still sends a frame of its
/// bytes. The bytes are random, so that no network can compress them.
struct Taken {
  Taken() {
    std::minstd_rand random;
    std::ranges::generate(bytes, [&] { return std::byte(random() >> 8); });
  }
  std::mutex mutex;
  std::condition_variable_any changed;
  int under_way = 0;
  std::array<std::byte, kProbeFillBytes> bytes{};
};

void frame_taken(void* context) {
  const std::unique_ptr<std::shared_ptr<Taken>> taken(
      static_cast<std::shared_ptr<Taken>*>(context));
  const std::lock_guard lock((*taken)->mutex);
  --(*taken)->under_way;
  (*taken)->changed.notify_all();
}

void fill(const std::stop_token& stop, Connection& to, Duration duration) {
  const auto taken = std::make_shared<Taken>();
  const TimePoint until = std::chrono::steady_clock::now() + duration;
  const FrameHeader header{.payload_bytes = kProbeFillBytes,
                           .type = std::uint16_t(ProbeType::kBytes)};
  while (!stop.stop_requested() && std::chrono::steady_clock::now() < until) {
    {
      std::unique_lock lock(taken->mutex);
      if (!taken->changed.wait_until(lock, stop, until, [&] { return taken->under_way < kAtOnce; }))
        break;
      ++taken->under_way;
    }
    to.send(header, taken->bytes, frame_taken, new std::shared_ptr<Taken>(taken));
  }
  if (!stop.stop_requested()) to.send({.type = std::uint16_t(ProbeType::kFilled)}, {});
}

}  // namespace

StreamPump::StreamPump(std::shared_ptr<Connection> to, Duration duration)
    : thread_([to = std::move(to), duration](const std::stop_token& stop) {
        fill(stop, *to, duration);
      }) {}

}  // namespace paceline
