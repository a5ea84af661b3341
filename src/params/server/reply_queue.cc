#include "params/server/reply_queue.h"

#include <algorithm>

#include "params/wire/message.h"

namespace paceline {
namespace {

// Enough that the connection has the next frame while it sends one.
constexpr std::size_t kMostInConnection = 2 * kChunkBytes;
constexpr std::uint32_t kUnranked = 0xfffffffe, kLast = 0xffffffff;

}  // namespace

void ReplyQueue::set_order(std::span<const std::uint32_t> pieces) {
  const std::lock_guard lock(mutex_);
  std::ranges::fill(ranks_, kUnranked);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i] >= ranks_.size()) ranks_.resize(pieces[i] + 1, kUnranked);
    ranks_[pieces[i]] = std::uint32_t(i);
  }
}

// What is read of one moment comes after all values that were sent before: those would be older.
std::uint32_t ReplyQueue::rank_of(const FrameHeader& header) const {
  if (MessageType{header.type} == MessageType::kState) return kLast;
  return header.id < ranks_.size() ? ranks_[header.id] : kUnranked;
}

void ReplyQueue::push(const FrameHeader& header, ReplyBlocks::Lent block) {
  {
    const std::lock_guard lock(mutex_);
    if (!connection_) return;
    waiting_.push_back({rank_of(header), pushed_++, header, std::move(block)});
    std::push_heap(waiting_.begin(), waiting_.end());
  }
  send_some();
}

bool ReplyQueue::may_send() const {
  return !waiting_.empty() && connection_ &&
         (bytes_in_connection_ == 0 ||
          bytes_in_connection_ + waiting_.front().block->bytes <= kMostInConnection);
}

// One thread at a time, so that the order stays: what another one finds or makes room for meanwhile
// is seen here.
void ReplyQueue::send_some() {
  std::unique_lock lock(mutex_);
  if (sending_) return;
  sending_ = true;
  while (may_send()) {
    std::pop_heap(waiting_.begin(), waiting_.end());
    Reply reply = std::move(waiting_.back());
    waiting_.pop_back();
    bytes_in_connection_ += reply.block->bytes;
    const std::shared_ptr<Connection> connection = connection_;
    lock.unlock();
    send(*connection, reply.header, std::move(reply.block));
    lock.lock();
  }
  sending_ = false;
}

bool ReplyQueue::send_at_once(const FrameHeader& header, std::span<const std::byte> payload) {
  std::unique_lock lock(mutex_);
  const bool at_rest = !sending_ && waiting_.empty() && bytes_in_connection_ == 0;
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
    bytes_in_connection_ -= bytes;
  }
  send_some();
}

std::shared_ptr<Connection> ReplyQueue::connection() {
  const std::lock_guard lock(mutex_);
  return connection_;
}

// Blocks go back, and the connection's end may call on_sent: neither under the lock.
void ReplyQueue::drop() {
  std::shared_ptr<Connection> ended;
  std::vector<Reply> unsent;
  const std::lock_guard lock(mutex_);
  ended.swap(connection_);
  unsent.swap(waiting_);
}

}  // namespace paceline
