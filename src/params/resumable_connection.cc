// How messages are sent again without a copy of their payloads: `sent` is called only once the
// other side has confirmed the message, so the payload stays where it is until then. Values are not
// kept: to send them again, they are read again (Source).
//
// Apart from this class, only the state machines know of cuts. They take a worker that is cut off
// out of the membership epoch, and take it back in when it returns.
#include "params/resumable_connection.h"

#include <utility>

#include "params/wire/message.h"

namespace paceline {
namespace {

// True for messages that must be confirmed at once, since the other side waits for room, or for
// memory that it has lent.
bool is_confirmed_at_once(MessageType type) {
  switch (type) {
    case MessageType::kWriteEnd:
    case MessageType::kGoodbye:
    case MessageType::kDecided:
    case MessageType::kRowValues:
    case MessageType::kState:
    case MessageType::kMarked:
      return true;
    default:
      return false;
  }
}

}  // namespace

void ResumableConnection::open(std::shared_ptr<Connection> connection) {
  const std::lock_guard lock(mutex_);
  peer_ = connection->peer();
  kind_ = connection->kind();
  encrypted_ = connection->encrypted();
  if (log_.empty() && handled_ == 0) can_share_ = connection->can_share();
  connection_ = std::move(connection);
  flows_ = false;
}

std::shared_ptr<Connection> ResumableConnection::release() {
  const std::lock_guard lock(mutex_);
  flows_ = false;
  return std::exchange(connection_, nullptr);
}

void ResumableConnection::go_on(std::uint64_t handled_there) {
  std::unique_lock lock(mutex_);
  if (connection_ == nullptr || abandoned_) return;
  log_.go_on(handled_there);
  flows_ = true;
  send_waiting(lock);
  give_back_confirmed(lock);
}

bool ResumableConnection::all_confirmed() const {
  const std::lock_guard lock(mutex_);
  return log_.unconfirmed() == 0;
}

void ResumableConnection::abandon() {
  std::unique_lock lock(mutex_);
  abandoned_ = true;
  flows_ = false;
  while (!log_.empty()) {
    const Item item = log_.abandon();
    lock.unlock();
    item.frame.give_back();
    lock.lock();
  }
}

std::shared_ptr<Connection> ResumableConnection::present() const {
  const std::lock_guard lock(mutex_);
  return connection_;
}

// Sending.

void ResumableConnection::send(const FrameHeader& header, std::span<const std::byte> payload,
                               void (*sent)(void*), void* context) {
  Item item{.frame = {header, payload, sent, context}};
  item.frame.header.payload_bytes = std::uint32_t(payload.size());
  if (is_numbered(MessageType{header.type})) {
    item.made_again = source_ != nullptr && source_->makes(header);
    return queue(std::move(item));
  }
  if (const std::shared_ptr<Connection> connection = present()) {
    return connection->send(header, payload, sent, context);
  }
  item.frame.give_back();
}

void ResumableConnection::send_copy(const FrameHeader& header, std::span<const std::byte> payload) {
  Item item{.frame = {header, payload}};
  item.frame.header.payload_bytes = std::uint32_t(payload.size());
  item.frame.lent_by_call = true;
  item.made_again = source_ != nullptr && source_->makes(header);
  queue(std::move(item));
}

void ResumableConnection::share(std::uint32_t id, std::shared_ptr<const SharedMemory> memory) {
  if (!can_share()) throw Error(ErrorCode::kFailedPrecondition, "no memory can be shared");
  queue({.frame = {.header = {.id = id}, .payload = {}, .shared = std::move(memory)}});
}

// If there is no connection, and the source can make the message again, keeps only its header.
void ResumableConnection::queue(Item item) {
  std::unique_lock lock(mutex_);
  if (abandoned_) {
    lock.unlock();
    return item.frame.give_back();
  }
  QueuedFrame unsent;
  if (item.made_again && !flows_) {
    unsent = std::exchange(item.frame, QueuedFrame{.header = item.frame.header, .payload = {}});
    item.given = true;
  } else if (item.frame.lent_by_call && (!flows_ || sending_ || !item.made_again)) {
    item.frame.keep_payload();
  }
  log_.push(std::move(item));
  send_waiting(lock);
  lock.unlock();
  unsent.give_back();
}

// Only one thread sends at a time, so that messages keep their order. This thread also sends what
// other threads push meanwhile.
void ResumableConnection::send_waiting(std::unique_lock<std::mutex>& lock) {
  if (sending_) return;
  sending_ = true;
  while (flows_ && log_.has_next()) {
    Item& item = log_.next();
    const Item now = item;
    item.given = true;
    if (item.made_again) item.frame = {.header = item.frame.header, .payload = {}};
    const std::shared_ptr<Connection> connection = connection_;
    lock.unlock();
    try {
      hand_over(*connection, now);
    } catch (const Error&) {
      connection->close(Deadline::after(Duration()));  // it has no memory for a message
    }
    lock.lock();
  }
  sending_ = false;
}

// The payload of a kept message stays unchanged until the other side confirms the message. So this
// class does not need to hear when the connection has sent the payload.
void ResumableConnection::hand_over(Connection& connection, const Item& item) {
  const QueuedFrame& frame = item.frame;
  if (frame.shared != nullptr) {
    connection.share(frame.header.id, frame.shared);
  } else if (!item.made_again) {
    connection.send(frame.header, frame.payload, nullptr, nullptr);
  } else if (item.given) {
    source_->make(frame.header, frame.header.payload_bytes, connection);
  } else if (frame.lent_by_call) {
    connection.send_copy(frame.header, frame.payload);
  } else {
    connection.send(frame.header, frame.payload, frame.sent, frame.context);
  }
}

void ResumableConnection::give_back_confirmed(std::unique_lock<std::mutex>& lock) {
  while (log_.has_confirmed()) {
    const Item item = log_.pop();
    lock.unlock();
    item.frame.give_back();
    lock.lock();
  }
}

void ResumableConnection::close(Deadline deadline) {
  if (const std::shared_ptr<Connection> connection = present()) connection->close(deadline);
}

bool ResumableConnection::can_share() const {
  const std::lock_guard lock(mutex_);
  return can_share_;
}

bool ResumableConnection::idle() const {
  const std::lock_guard lock(mutex_);
  return flows_ && !sending_ && !log_.has_next() && connection_->idle();
}

std::string ResumableConnection::peer() const {
  const std::lock_guard lock(mutex_);
  return peer_;
}

std::string_view ResumableConnection::kind() const {
  const std::lock_guard lock(mutex_);
  return kind_;
}

bool ResumableConnection::encrypted() const {
  const std::lock_guard lock(mutex_);
  return encrypted_;
}

std::optional<Duration> ResumableConnection::round_trip() const {
  const std::lock_guard lock(mutex_);
  return connection_ == nullptr ? round_trip_ : connection_->round_trip();
}

const Traffic& ResumableConnection::traffic() const {
  const std::lock_guard lock(mutex_);
  const Traffic* const now = connection_ == nullptr ? nullptr : &connection_->traffic();
  traffic_.bytes_sent = sent_before_ + (now == nullptr ? 0 : now->bytes_sent.load());
  traffic_.bytes_received = received_before_ + (now == nullptr ? 0 : now->bytes_received.load());
  traffic_.busy_ns = busy_before_ + (now == nullptr ? 0 : now->busy_ns.load());
  return traffic_;
}

// Receiving.

template <typename Call>
auto ResumableConnection::guarded(Call&& call) {
  try {
    return call();
  } catch (...) {
    broken_ = true;
    throw;
  }
}

std::span<std::byte> ResumableConnection::place_payload(const FrameHeader& header) {
  return guarded([&] { return receiver_.place_payload(header); });
}

void ResumableConnection::on_frame(const FrameHeader& header, std::span<const std::byte> payload) {
  const MessageType type{header.type};
  if (type == MessageType::kHandled) {
    return guarded([&] {
      std::unique_lock lock(mutex_);
      log_.confirm(header.step);
      give_back_confirmed(lock);
    });
  }
  // Confirms the end of a step before the receiver handles it. If the step ends a round, the
  // round's values would otherwise leave before the confirmation, and the worker waits for that
  // confirmation before it reuses the memory of its contributions.
  const bool ends_step = type == MessageType::kStepEnd;
  if (ends_step) confirm_handled(true);
  guarded([&] { receiver_.on_frame(header, payload); });
  if (!ends_step && is_numbered(type)) confirm_handled(is_confirmed_at_once(type));
}

void ResumableConnection::on_shared(std::uint32_t id, std::shared_ptr<const SharedMemory> memory) {
  guarded([&] { receiver_.on_shared(id, std::move(memory)); });
  confirm_handled(false);
}

void ResumableConnection::confirm_handled(bool at_once) {
  const bool tell = count_.handled(at_once);
  handled_ = count_.count();
  if (!tell) return;
  if (const std::shared_ptr<Connection> connection = present()) {
    connection->send({.type = std::uint16_t(MessageType::kHandled), .step = count_.count()}, {});
  }
}

void ResumableConnection::on_closed(const Error& error) {
  std::shared_ptr<Connection> ended;
  {
    const std::lock_guard lock(mutex_);
    flows_ = false;
    ended = std::exchange(connection_, nullptr);
    if (ended != nullptr) {
      round_trip_ = ended->round_trip();
      sent_before_ += ended->traffic().bytes_sent;
      received_before_ += ended->traffic().bytes_received;
      busy_before_ += ended->traffic().busy_ns;
    }
  }
  receiver_.on_closed(error);
}

}  // namespace paceline
