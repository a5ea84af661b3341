#include "params/ps/replies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "params/wire/message.h"

namespace paceline {
namespace {

using ::testing::ElementsAre;

/// A connection that sends only the replies that a test releases.
class Gate : public Connection {
 public:
  void send(const FrameHeader& header, std::span<const std::byte>, void (*sent)(void*),
            void* context) override {
    taken.push_back(header.id);
    waiting_.push_back({sent, context});
  }
  void close(Deadline) override {}
  bool idle() const override { return waiting_.empty(); }
  std::string peer() const override { return "worker:0"; }
  std::string_view kind() const override { return "inproc"; }
  const Traffic& traffic() const override { return traffic_; }
  /// Sends the oldest reply.
  void let_one() {
    const auto [sent, context] = waiting_.front();
    waiting_.pop_front();
    sent(context);
  }
  void let_all() {
    while (!waiting_.empty()) let_one();
  }
  std::vector<std::uint32_t> taken;

 private:
  Traffic traffic_;
  std::deque<std::pair<void (*)(void*), void*>> waiting_;
};

class ReplyQueueTest : public ::testing::Test {
 protected:
  void push(std::uint32_t piece, std::size_t bytes, MessageType type = MessageType::kValues) {
    queue_->push({.type = std::uint16_t(type), .id = piece}, blocks_->take(bytes));
  }
  void TearDown() override { gate_->let_all(); }

  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  const std::shared_ptr<ReplyBlocks> blocks_ =
      std::make_shared<ReplyBlocks>(ReplyBudget(std::size_t{100} << 20));
  const std::shared_ptr<ReplyQueue> queue_ = std::make_shared<ReplyQueue>(gate_);
};

// 67 replies of a whole chunk each wait, two of them in the connection. Once the connection has
// sent one of these two, it gets the later replies, whose pieces are needed first.
TEST_F(ReplyQueueTest, TheFirstNeededOvertakesWhatWaits) {
  queue_->set_order(std::vector<std::uint32_t>{7, 8, 2});
  for (int i = 0; i < 67; ++i) push(2, kChunkBytes);
  EXPECT_THAT(gate_->taken, ElementsAre(2, 2));
  push(8, 1000);
  push(7, 4000);
  gate_->let_one();
  EXPECT_THAT(gate_->taken, ElementsAre(2, 2, 7, 8)) << "and no more than fits";
  gate_->let_all();
  EXPECT_EQ(gate_->taken.size(), 69u);
}

TEST_F(ReplyQueueTest, NothingIsHeldBackForWhatIsNotThere) {
  queue_->set_order(std::vector<std::uint32_t>{1, 0});
  push(0, 10);
  push(1, 10);
  EXPECT_THAT(gate_->taken, ElementsAre(0, 1));
}

TEST_F(ReplyQueueTest, WithoutAnOrderTheyGoAsTheyComeAndStatesLast) {
  push(3, 2 * kChunkBytes);
  push(5, kChunkBytes, MessageType::kState);
  for (const std::uint32_t piece : {4, 2, 4, 0}) push(piece, kChunkBytes);
  gate_->let_all();
  EXPECT_THAT(gate_->taken, ElementsAre(3, 4, 2, 4, 0, 5));
}

TEST_F(ReplyQueueTest, WhatIsLargerThanTheWindowIsSentAlone) {
  push(0, 10 * kChunkBytes);
  push(1, 1);
  EXPECT_THAT(gate_->taken, ElementsAre(0));
  gate_->let_all();
  EXPECT_THAT(gate_->taken, ElementsAre(0, 1));
}

TEST_F(ReplyQueueTest, AfterTheEndNothingIsSentAndBlocksComeBack) {
  for (int i = 0; i < 5; ++i) push(0, kChunkBytes);
  queue_->drop();
  push(1, 1);
  gate_->let_all();
  EXPECT_EQ(gate_->taken.size(), 2u);
  ReplyBlocks::Lent all = blocks_->take(std::size_t{99} << 20);  // of 100
}

TEST_F(ReplyQueueTest, AtOnceGoesOnlyWhatFindsNothingOnItsWay) {
  const std::vector<std::byte> payload(100);
  EXPECT_TRUE(queue_->send_at_once({.id = 1}, payload));
  EXPECT_FALSE(queue_->send_at_once({.id = 2}, payload)) << "the connection has not sent the first";
  gate_->let_all();
  push(3, 100);
  EXPECT_FALSE(queue_->send_at_once({.id = 4}, payload)) << "it would overtake a block";
  gate_->let_all();
  EXPECT_TRUE(queue_->send_at_once({.id = 5}, payload));
  EXPECT_THAT(gate_->taken, ElementsAre(1, 3, 5));
  gate_->let_all();
  queue_->drop();
  EXPECT_FALSE(queue_->send_at_once({.id = 6}, payload)) << "the connection has ended";
}

}  // namespace
}  // namespace paceline
