#include "predict/message_cost.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <future>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "net/link.h"
#include "paceline/error.h"

namespace paceline {
namespace {

constexpr int kCostTimings = 15, kTripsOfTiming = 10;
constexpr Duration kLongestMeasuring = std::chrono::seconds(2);

double process_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

double wall_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

/// An end that answers each frame with a frame.
class AnsweringEnd : public Receiver {
 public:
  void answer_over(std::shared_ptr<Connection> connection) { connection_ = std::move(connection); }
  void send() { connection_->send({}, {}); }

  std::span<std::byte> place_payload(const FrameHeader& /*header*/) override { return {}; }
  void on_frame(const FrameHeader& /*header*/, std::span<const std::byte> /*payload*/) override {
    send();
  }
  void on_closed(const Error& /*error*/) override {}

 private:
  std::shared_ptr<Connection> connection_;
};

/// The end that begins, and times the round trips.
class TimingEnd : public AnsweringEnd {
 public:
  void begin() {
    begin_timing();
    send();
  }
  void on_frame(const FrameHeader& /*header*/, std::span<const std::byte> /*payload*/) override {
    if (++made_ == kTripsOfTiming) {
      const double messages = 2 * kTripsOfTiming;
      costs_.push_back({.core_s = (process_seconds() - cores_) / messages / 2,
                        .trip_s = (wall_seconds() - wall_) / messages});
      if (int(costs_.size()) == kCostTimings) return all_.set_value(costs_);
      begin_timing();
    }
    send();
  }
  std::future<std::vector<MessageCost>> all() { return all_.get_future(); }

 private:
  void begin_timing() {
    made_ = 0;
    cores_ = process_seconds();
    wall_ = wall_seconds();
  }

  int made_ = 0;
  double cores_ = 0, wall_ = 0;
  std::vector<MessageCost> costs_;
  std::promise<std::vector<MessageCost>> all_;
};

double median(const std::vector<MessageCost>& costs, double MessageCost::*of) {
  std::vector<double> values;
  values.reserve(costs.size());
  for (const MessageCost& cost : costs) values.push_back(cost.*of);
  const auto middle = values.begin() + std::ptrdiff_t(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

MessageCost measured_message_cost(const std::string& kind) {
  AnsweringEnd answering;
  TimingEnd timing;
  std::future<std::vector<MessageCost>> all = timing.all();
  try {
    // The receivers of a job's messages mostly sleep; without this they would poll for the next
    // one.
    LinkOptions sleeps;
    sleeps.spin = Duration(0);
    const std::unique_ptr<Link> there = make_link(kind, sleeps), here = make_link(kind, sleeps);
    const std::string address =
        there->listen("127.0.0.1:0", [&](std::shared_ptr<Connection> connection) -> Receiver* {
          answering.answer_over(std::move(connection));
          return &answering;
        });
    timing.answer_over(here->connect(address, timing, Deadline::after(kLongestMeasuring)));
    timing.begin();
    if (all.wait_for(kLongestMeasuring) != std::future_status::ready) return {};
    const std::vector<MessageCost> costs = all.get();
    return {median(costs, &MessageCost::core_s), median(costs, &MessageCost::trip_s)};
  } catch (const Error&) {
    return {};  // this machine has no loopback, or no room for shared memory
  }
}

}  // namespace paceline
