// One connection with another worker of an all-reduce.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/link.h"
#include "params/clock_questions.h"
#include "params/wire/task_state.h"

namespace paceline {

class CollectiveDriver;

/// It hands what arrives to the driver. The peer is nobody before both know each other.
class CollectiveConnection : public Receiver {
 public:
  /// `expected` is the worker that was called, or −1 when the peer has called.
  CollectiveConnection(CollectiveDriver& driver, int expected, TimePoint since,
                       Timeline* timeline = nullptr)
      : clock(timeline, fmt::format("worker:{}", expected)),
        driver_(driver),
        expected_(expected),
        since_(since) {}

  std::span<std::byte> place_payload(const FrameHeader& header) override;
  void on_frame(const FrameHeader& header, std::span<const std::byte> payload) override;
  void on_shared(std::uint32_t id, std::shared_ptr<const SharedMemory> memory) override;
  void on_closed(const Error& error) override;

  int expected() const { return expected_; }
  TimePoint since() const { return since_; }
  /// The worker that it is; −1: unknown. Set once, by the driver.
  std::atomic<int> worker{-1};
  std::atomic<bool> closed{false};
  std::uint64_t incarnation = 0;           // of the worker's process
  std::optional<TimePoint> ended;          // when nothing more was to come
  std::shared_ptr<Connection> connection;  // null until it is made
  StateFrames state;                       // of a task, as it arrives
  ClockQuestions clock;                    // to a worker that was called
  bool progress_asked = false;             // and not told yet; under the lock of the driver

 private:
  CollectiveDriver& driver_;
  const int expected_;
  const TimePoint since_;
  std::vector<std::byte> received_;
};

}  // namespace paceline
