#include "net/inproc/inproc_connection.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "base/deadline.h"

namespace paceline {
namespace {

constexpr std::size_t kLong = 48;
static_assert(kLong > InprocQueue::kShortBytes);

void count(void* counter) { ++*static_cast<std::atomic<int>*>(counter); }

class InprocQueueTest : public testing::Test {
 protected:
  /// Pushes a frame with this number.
  bool push(std::uint64_t number, std::size_t bytes = 8) {
    payloads_[number % 2].assign(bytes, std::byte(number));
    QueuedFrame frame{.header = {.step = number}, .payload = payloads_[number % 2]};
    frame.header.payload_bytes = std::uint32_t(bytes);
    frame.sent = &count;
    frame.context = &sent_;
    return queue_.push(frame);
  }
  /// Takes the next frame and returns its number; 0 if there is none.
  std::uint64_t take() {
    const std::optional<QueuedFrame> frame = queue_.take(room_);
    if (!frame) return 0;
    queue_.give_back(*frame);
    return frame->header.step;
  }

  TrafficMeter meter_;
  InprocQueue queue_{meter_};
  InprocQueue::ShortPayload room_;
  std::array<std::vector<std::byte>, 2> payloads_;
  std::atomic<int> sent_{0};
};

TEST_F(InprocQueueTest, CopiesAShortPayloadAtOnce) {
  for (const std::size_t bytes : {std::size_t(0), std::size_t(1), InprocQueue::kShortBytes}) {
    sent_ = 0;
    push(1, bytes);
    EXPECT_EQ(sent_, 1) << bytes;
    const std::vector<std::byte> was = payloads_[1];
    payloads_[1].assign(bytes, std::byte(7));
    const std::optional<QueuedFrame> frame = queue_.take(room_);
    ASSERT_TRUE(frame);
    EXPECT_EQ(frame->header.payload_bytes, bytes);
    EXPECT_TRUE(std::ranges::equal(frame->payload, was)) << bytes;
    EXPECT_FALSE(queue_.is_idle());
    queue_.give_back(*frame);
    EXPECT_TRUE(queue_.is_idle());
    EXPECT_EQ(sent_, 1) << bytes;
  }
}

TEST_F(InprocQueueTest, BorrowsALongerPayload) {
  push(1, InprocQueue::kShortBytes + 1);
  const std::optional<QueuedFrame> frame = queue_.take(room_);
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->payload.data(), payloads_[1].data());
  EXPECT_EQ(frame->payload.size(), InprocQueue::kShortBytes + 1);
  EXPECT_EQ(sent_, 0);
  queue_.give_back(*frame);
  EXPECT_EQ(sent_, 1);
}

// The test pushes far more frames than the ring has lines for, and takes them while it is full,
// partly empty, and empty.
TEST_F(InprocQueueTest, KeepsTheOrderHoweverMuchWaits) {
  std::uint64_t pushed = 0, taken = 0;
  for (const int some : {1000, 1, 300, 700, 3, 90}) {
    for (int i = 0; i < some; ++i) ASSERT_TRUE(push(++pushed, i % 3 == 0 ? kLong : 8));
    while (pushed - taken > std::uint64_t(some % 7) * 20) ASSERT_EQ(take(), ++taken);
  }
  while (taken < pushed) ASSERT_EQ(take(), ++taken);
  EXPECT_FALSE(queue_.has_come());
  EXPECT_EQ(take(), 0u);
  EXPECT_TRUE(queue_.is_idle());
  EXPECT_EQ(sent_, int(pushed));
}

TEST_F(InprocQueueTest, CarriesSharedMemoryInOrder) {
  const auto memory = SharedMemory::create(1);
  push(1);
  queue_.push({.header = {.id = 5}, .payload = {}, .shared = memory});
  push(2);
  EXPECT_EQ(take(), 1u);
  {
    const std::optional<QueuedFrame> frame = queue_.take(room_);
    ASSERT_TRUE(frame);
    EXPECT_EQ(frame->shared, memory);
    EXPECT_EQ(frame->header.id, 5u);
    queue_.give_back(*frame);
  }
  EXPECT_EQ(memory.use_count(), 1);
  EXPECT_EQ(take(), 2u);
}

TEST_F(InprocQueueTest, GivesBackWhatItRefuses) {
  push(1);
  queue_.shut();
  EXPECT_FALSE(push(2));
  EXPECT_FALSE(push(3, kLong));
  EXPECT_EQ(sent_, 3);
  EXPECT_EQ(take(), 1u);
  EXPECT_EQ(take(), 0u);
  EXPECT_TRUE(queue_.is_idle());
}

TEST_F(InprocQueueTest, IsIdleWhenAllThatWasTakenIsGivenBack) {
  for (int i = 0; i < 200; ++i) push(1, kLong);
  EXPECT_EQ(meter_.traffic().bytes_sent, std::int64_t(200 * (kFrameHeaderBytes + kLong)));
  const std::optional<QueuedFrame> frame = queue_.take(room_);
  ASSERT_TRUE(frame);
  queue_.drain();
  EXPECT_FALSE(queue_.has_come());
  EXPECT_EQ(sent_, 199);
  EXPECT_FALSE(queue_.is_idle());
  queue_.shut();
  std::thread giver([&] { queue_.give_back(*frame); });
  queue_.wait_until_idle();
  EXPECT_EQ(sent_, 200);
  giver.join();
}

// The test sends short payloads, longer ones and shared memory as fast as possible.
TEST_F(InprocQueueTest, CarriesAStreamFromThreadToThread) {
  std::vector<std::array<std::uint64_t, 6>> payloads(20'000);
  const auto memory = SharedMemory::create(1);
  const auto bytes_of = [](std::size_t i) { return i % 5 == 0 ? 0 : i % 3 == 0 ? kLong : 8; };
  const auto payload_of = [&](std::size_t i) {
    return std::as_bytes(std::span(payloads[i])).first(bytes_of(i));
  };
  for (std::size_t i = 0; i < payloads.size(); ++i) payloads[i].fill(i);
  std::thread sender([&] {
    for (std::size_t i = 0; i < payloads.size(); ++i) {
      queue_.push({.header = {.payload_bytes = std::uint32_t(bytes_of(i))},
                   .payload = payload_of(i),
                   .shared = i % 5 == 0 ? memory : nullptr});
    }
  });
  const Deadline deadline = Deadline::after(std::chrono::minutes(1));
  std::size_t next = 0;
  while (next < payloads.size() && !deadline.passed()) {
    const std::optional<QueuedFrame> frame = queue_.take(room_);
    if (!frame) continue;
    const bool is_next = std::ranges::equal(frame->payload, payload_of(next)) &&
                         (frame->shared != nullptr) == (next % 5 == 0);
    queue_.give_back(*frame);
    if (!is_next) break;
    ++next;
  }
  EXPECT_EQ(next, payloads.size());
  sender.join();
}

// A connection that has dropped a frame delivers no later frame, since a working receiver must not
// see a gap.
TEST_F(InprocQueueTest, NothingIsTakenOnceItIsDrained) {
  const std::vector<std::byte> payload(kLong);
  const FrameHeader header{.payload_bytes = std::uint32_t(payload.size())};
  struct Taker {
    std::function<std::uint64_t()> take;
    std::uint64_t taken;
  } taker{[this] { return take(); }, 0};
  const auto take_next = [](void* context) {
    auto& other = *static_cast<Taker*>(context);
    other.taken = other.take();
  };
  queue_.push({header, payload, take_next, &taker});
  push(2);
  queue_.shut();
  queue_.drain();
  EXPECT_EQ(taker.taken, 0u);
  EXPECT_TRUE(queue_.is_idle());
}

}  // namespace
}  // namespace paceline
