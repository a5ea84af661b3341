#include "params/ps/reply_queue.h"

#include <optional>
#include <utility>
#include <vector>

namespace paceline {

void ReplyQueue::set_order(std::span<const std::uint32_t> pieces) {
  const std::lock_guard lock(mutex_);
  schedule_.set_order(pieces);
}

void ReplyQueue::push(const FrameHeader& header, ReplyBlocks::Lent block) {
  {
    const std::lock_guard lock(mutex_);
    if (!connection_) return;
    const std::size_t bytes = block->bytes;
    schedule_.push(header, bytes, std::move(block));
  }
  send_some();
}

// One thread at a time sends, so that the order stays. It also sends the replies that other threads
// push, or make room for, meanwhile.
void ReplyQueue::send_some() {
  std::unique_lock lock(mutex_);
  if (sending_) return;
  sending_ = true;
  while (connection_) {
    std::optional<Schedule::Reply> reply = schedule_.next();
    if (!reply) break;
    const std::shared_ptr<Connection> connection = connection_;
    lock.unlock();
    send(*connection, reply->header, std::move(reply->payload));
    lock.lock();
  }
  sending_ = false;
}

bool ReplyQueue::send_at_once(const FrameHeader& header, std::span<const std::byte> payload) {
  std::unique_lock lock(mutex_);
  const bool at_rest = !sending_ && schedule_.at_rest();
  if (!connection_ || !at_rest || !connection_->idle()) return false;
  sending_ = true;
  const std::shared_ptr<Connection> connection = connection_;
  lock.unlock();
  connection->send_copy(header, payload);
  lock.lock();
  sending_ = false;
  lock.unlock();
  send_some();
  return true;
}

void ReplyQueue::send(Connection& connection, FrameHeader header, ReplyBlocks::Lent block) {
  header.payload_bytes = std::uint32_t(block->bytes);
  block->queue = shared_from_this();
  const std::span<const std::byte> payload = block->span();
  connection.send(
      header, payload,
      [](void* sent) {
        ReplyBlocks::Lent back(static_cast<ReplyBlocks::Block*>(sent));
        const std::shared_ptr<ReplyQueue> queue = std::move(back->queue);
        const std::size_t bytes = back->bytes;
        back.reset();
        queue->on_sent(bytes);
      },
      block.release());
}

void ReplyQueue::on_sent(std::size_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    schedule_.sent(bytes);
  }
  send_some();
}

std::shared_ptr<Connection> ReplyQueue::connection() {
  const std::lock_guard lock(mutex_);
  return connection_;
}

// Blocks are given back, and the connection's end may call on_sent: neither happens under the lock.
void ReplyQueue::drop() {
  std::shared_ptr<Connection> ended;
  std::vector<Schedule::Reply> unsent;
  const std::lock_guard lock(mutex_);
  ended.swap(connection_);
  unsent = schedule_.take_waiting();
}

}  // namespace paceline
