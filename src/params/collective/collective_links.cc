// The connections of an all-reduce: a worker calls those of lower index, again and again.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/address.h"
#include "base/this_process.h"
#include "net/link_kind.h"
#include "params/collective/collective_driver.h"
#include "params/protocol/worker_greeting.h"

namespace paceline {
namespace {

constexpr Duration kOneTry = std::chrono::seconds(2);
constexpr Duration kBetweenTries = std::chrono::milliseconds(300);
// A peer that has called says who it is within this.
constexpr Duration kHelloWithin = std::chrono::seconds(5);
constexpr std::size_t kMostUnidentified = 64;
// A connection that has ended is forgotten once no thread can be inside it any more.
constexpr Duration kForgottenAfter = std::chrono::seconds(5);
constexpr Duration kClosingPatience = std::chrono::seconds(2);

FrameHeader header_of(MessageType type, std::size_t bytes, std::uint64_t step = 0) {
  return {.payload_bytes = std::uint32_t(bytes), .type = std::uint16_t(type), .step = step};
}

}  // namespace

std::string CollectiveDriver::text_of(int worker) const {
  return fmt::format("worker:{} at {}", worker, options_.spec.workers[std::size_t(worker)]);
}

void CollectiveDriver::listen() {
  const std::string& own = options_.spec.workers[std::size_t(options_.task.index)];
  const auto acceptor = [this](std::shared_ptr<Connection> peer) {
    return accept(std::move(peer));
  };
  std::string address;
  try {
    address = link_->listen(options_.bind.empty() ? own : options_.bind, acceptor);
  } catch (const Error& error) {
    const bool not_here = error.code() == ErrorCode::kNotFound && options_.bind.empty();
    throw Error(error.code(),
                fmt::format("{}: {}{}", options_.task.str(), error.what(),
                            not_here ? "; --bind 0.0.0.0 listens at every address of this host, at "
                                       "the port that the cluster says"
                                     : ""));
  }
  const bool is_open = options_.security.tls == Tls::kNever;
  if (!link_traits(link_->kind()).within_a_process && is_open && !is_loopback(address) &&
      options_.say) {
    options_.say(
        fmt::format("{} listens on {}: not encrypted, not authenticated; use it only in a network "
                    "that you trust",
                    options_.task.str(), address));
  }
}

Receiver* CollectiveDriver::accept(std::shared_ptr<Connection> connection) {
  const std::lock_guard lock(mutex_);
  const auto unidentified = std::ranges::count_if(
      peers_, [](const auto& peer) { return peer->worker < 0 && !peer->closed; });
  if (leaving_ || std::size_t(unidentified) >= kMostUnidentified) {
    throw Error(ErrorCode::kUnavailable, "[all-reduce] too many connections that say nothing");
  }
  peers_.push_back(std::make_unique<CollectiveConnection>(*this, -1, now()));
  peers_.back()->connection = std::move(connection);
  return peers_.back().get();
}

Hello CollectiveDriver::hello(int to) const {
  Hello hello;
  hello.role = "worker";
  hello.index = options_.task.index;
  hello.cluster_id = options_.cluster_id;
  hello.incarnation = incarnation_;
  hello.fingerprint = fingerprint_;
  hello.flags = options_.agreed_flags;
  hello.ps = to;
  hello.workers = int(options_.spec.workers.size());
  if (options_.rounds != nullptr) hello.ps_incarnation = options_.rounds->ps_incarnation();
  hello.process = this_process();
  return hello;
}

void CollectiveDriver::keep_connected() {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      keeper_wakes_.wait_for(lock, kBetweenTries / 3, [this] {
        return stopping_ || !closing_.empty() ||
               (!group_.lacking().empty() && applied_ == group_.commits());
      });
      if (stopping_) return;
    }
    try {
      close_idle();
      connect_missing();
      send_lacking_values();
    } catch (const Error& error) {
      fail(error);
    }
  }
}

void CollectiveDriver::connect_missing() {
  std::vector<int> missing;
  {
    const std::lock_guard lock(mutex_);
    if (leaving_) return;
    for (int w = 0; w < options_.task.index; ++w) {
      if (current_[std::size_t(w)] == nullptr && now() >= tries_[std::size_t(w)].next) {
        missing.push_back(w);
      }
    }
  }
  for (const int worker : missing) connect(worker);
}

void CollectiveDriver::connect(int worker) {
  CollectiveConnection* peer = nullptr;
  {
    const std::lock_guard lock(mutex_);
    // It counts as tried until it is greeted, or for as long as that may take.
    tries_[std::size_t(worker)].next = now() + kHelloWithin;
    peers_.push_back(
        std::make_unique<CollectiveConnection>(*this, worker, now(), options_.timeline));
    peer = peers_.back().get();
  }
  try {
    std::shared_ptr<Connection> made =
        link_->connect(options_.spec.workers[std::size_t(worker)], *peer,
                       Deadline::after(kOneTry).or_when_readable(stop_.fd()));
    const std::lock_guard lock(mutex_);
    peer->connection = std::move(made);
    send_message(*peer, {MessageType::kHello, hello(worker)});
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInvalidArgument) throw;
    const std::lock_guard lock(mutex_);
    peer->closed = true;
    peer->ended = now();
    tries_[std::size_t(worker)] = {now() + kBetweenTries, error.what()};
  }
}

// Ends connections that were replaced or refused, and those whose peers do not say who they are.
void CollectiveDriver::close_idle() {
  std::vector<Closing> closing;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& peer : peers_) {
      const bool silent = peer->worker < 0 && !peer->closed && peer->connection != nullptr &&
                          now() - peer->since() > kHelloWithin;
      if (silent) closing_.push_back({peer->connection, Deadline::after(Duration(0))});
    }
    closing = std::exchange(closing_, {});
    std::erase_if(peers_, [this](const auto& peer) {
      return peer->ended && now() - *peer->ended > kForgottenAfter;
    });
  }
  for (const Closing& each : closing) each.connection->close(each.deadline);
}

void CollectiveDriver::close_later(CollectiveConnection& peer, Duration patience) {
  if (peer.connection == nullptr) return;
  closing_.push_back({peer.connection, Deadline::after(patience)});
  keeper_wakes_.notify_all();
}

void CollectiveDriver::received(CollectiveConnection& from, const FrameHeader& header,
                                std::span<const std::byte> payload) {
  const int worker = from.worker;
  const MessageType type{header.type};
  check_flags(header);
  if (worker < 0) return take_greeting(from, header, payload);
  switch (type) {
    case MessageType::kPartialSum:
    case MessageType::kContributedRows:
    case MessageType::kInPlace:
      if (over_links_ == nullptr) break;
      return over_links_->arrived(worker, header, payload);
    case MessageType::kExchangedSums:
      return take_sums(worker, header, payload);
    case MessageType::kWrite:
    case MessageType::kValuesSent:
      return take_value_frame(worker, header, payload);
    case MessageType::kTaskState:
      return take_state(from, header, payload);
    case MessageType::kAskState:
      return change([&] {
        state_asker_ = worker;
        shown_.state_asked = header.step;
      });
    case MessageType::kAskProgress:
      return tell_progress(worker);
    case MessageType::kProgress:
      return hear_progress(from, decode_text(payload, type));
    case MessageType::kAskClock:
      return tell_clock(header, *from.connection);
    case MessageType::kClock:
      return from.clock.answered(header, *from.connection);
    case MessageType::kRefuse:
      return fail({ErrorCode::kFailedPrecondition, decode_text(payload, type)});
    default:
      break;
  }
  if (!is_control_for_peer(type)) {
    throw Error(ErrorCode::kDataLoss,
                fmt::format("[all-reduce] {} is no message of workers", name_of(type)));
  }
  const ControlMessage message = decode_control(type, payload, header.step);
  change([&] {
    if (current_[std::size_t(worker)] == &from) group_.received(worker, message, now(), out_);
  });
}

void CollectiveDriver::take_greeting(CollectiveConnection& from, const FrameHeader& header,
                                     std::span<const std::byte> payload) {
  const MessageType type{header.type};
  if (type == MessageType::kHello && from.expected() < 0) {
    return take_hello(from, decode_hello(payload));
  }
  if (type == MessageType::kWelcome && from.expected() >= 0) {
    return take_welcome(from, decode_welcome(payload));
  }
  if (type == MessageType::kRefuse && from.expected() >= 0) {
    return fail({ErrorCode::kFailedPrecondition,
                 fmt::format("{} refuses {}: {}", text_of(from.expected()), options_.task.str(),
                             decode_text(payload, type))});
  }
  throw Error(ErrorCode::kDataLoss, fmt::format("[all-reduce] {} is no greeting", name_of(type)));
}

void CollectiveDriver::take_hello(CollectiveConnection& from, const Hello& theirs) {
  change([&] {
    const Hello ours = hello(-1);
    std::string why = greeting_refusal(ours, theirs);
    // One of the two has not heard yet that ps 0 was lost with its values. It comes again.
    if (why.empty() && theirs.ps_incarnation != ours.ps_incarnation) {
      return close_later(from, Duration(0));
    }
    const CollectiveConnection* const known =
        why.empty() ? current_[std::size_t(theirs.index)] : nullptr;
    if (known != nullptr && theirs.incarnation < known->incarnation) {
      why = fmt::format("a newer process of worker:{} is connected", theirs.index);
    }
    if (!why.empty()) {
      send_message(from, {MessageType::kRefuse, why});
      return close_later(from, kClosingPatience);
    }
    Welcome welcome;
    welcome.incarnation = incarnation_;
    send_message(from, {MessageType::kWelcome, welcome});
    identify(from, theirs.index, theirs.incarnation);
  });
}

void CollectiveDriver::take_welcome(CollectiveConnection& from, const Welcome& welcome) {
  change([&] {
    if (from.connection == nullptr) {
      throw Error(ErrorCode::kDataLoss, "[all-reduce] a welcome before the hello");
    }
    identify(from, from.expected(), welcome.incarnation);
  });
  from.clock.begin(*from.connection);
}

// Both sides know each other. An older connection with the worker has ended, or will.
void CollectiveDriver::identify(CollectiveConnection& from, int worker, std::uint64_t incarnation) {
  CollectiveConnection*& current = current_[std::size_t(worker)];
  if (current != nullptr) {
    close_later(*current, Duration(0));
    group_.disconnected(worker, "a new connection took its place", now(), out_);
    if (receives_from_ == worker) receives_from_ = -1;
  }
  current = &from;
  from.incarnation = incarnation;
  from.worker = worker;
  if (options_.timeline != nullptr) {
    const bool called = from.expected() >= 0;
    options_.timeline->name_peer(
        called ? options_.spec.workers[std::size_t(worker)] : from.connection->peer(),
        fmt::format("worker:{}", worker));
  }
  const bool shares =
      over_links_ != nullptr && options_.share_memory && from.connection->can_share();
  if (shares) {
    from.connection->share(LinkCollectives::kContributions, over_links_->contributions());
    from.connection->share(LinkCollectives::kSums, over_links_->sums());
  }
  group_.connected(worker, shares, now(), out_);
}

void CollectiveDriver::shared(CollectiveConnection& from, std::uint32_t id,
                              std::shared_ptr<const SharedMemory> memory) {
  if (from.worker < 0 || over_links_ == nullptr) {
    throw Error(ErrorCode::kDataLoss, "[all-reduce] memory that nobody wants");
  }
  over_links_->take_memory(from.worker, id, std::move(memory));
}

void CollectiveDriver::count_ended(const CollectiveConnection& from) {
  if (from.connection == nullptr) return;
  const Traffic& traffic = from.connection->traffic();
  gone_.bytes_sent += traffic.bytes_sent;
  gone_.bytes_received += traffic.bytes_received;
  gone_.transfer += Duration(traffic.busy_ns);
  if (from.worker >= 0) add_link(gone_links_[std::size_t(from.worker)], from);
}

void CollectiveDriver::closed(CollectiveConnection& from, const Error& error) {
  change([&] {
    from.ended = now();
    count_ended(from);
    const int worker = from.worker;
    if (from.expected() >= 0) {
      tries_[std::size_t(from.expected())] = {now() + kBetweenTries, error.what()};
    }
    if (worker < 0 || current_[std::size_t(worker)] != &from) return;
    current_[std::size_t(worker)] = nullptr;
    // Whoever goes has lost nobody, and proposes nothing to those that it has not left yet.
    if (stopping_) return;
    if (receives_from_ == worker) receives_from_ = -1;
    inbox_.lose(worker);
    lose_member(worker, error);
    group_.disconnected(worker, error.what(), now(), out_);
  });
}

void CollectiveDriver::send_message(const CollectiveConnection& to,
                                    const ControlMessage& message) const {
  if (to.connection == nullptr || to.closed) return;
  const std::vector<std::byte> bytes = encode(message);
  to.connection->send_copy(header_of(message.type, bytes.size(), message.step), bytes);
}

std::shared_ptr<Connection> CollectiveDriver::connection_of(int worker) const {
  const std::lock_guard lock(mutex_);
  const CollectiveConnection* const peer = current_[std::size_t(worker)];
  return peer == nullptr ? nullptr : peer->connection;
}

void CollectiveDriver::send(int worker, const FrameHeader& header,
                            std::span<const std::byte> payload, void (*sent)(void*),
                            void* context) {
  if (const auto connection = connection_of(worker)) {
    connection->send(header, payload, sent, context);
  } else {
    sent(context);
  }
}

void CollectiveDriver::send_copy(int worker, const FrameHeader& header,
                                 std::span<const std::byte> payload) {
  if (const auto connection = connection_of(worker)) connection->send_copy(header, payload);
}

std::vector<std::shared_ptr<Connection>> CollectiveDriver::connections() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Connection>> all;
  for (const CollectiveConnection* const peer : current_) {
    if (peer != nullptr) all.push_back(peer->connection);
  }
  return all;
}

StoreAccount CollectiveDriver::account() const {
  StoreAccount account;
  {
    const std::lock_guard lock(mutex_);
    account = gone_;
  }
  for (const auto& connection : connections()) {
    const Traffic& traffic = connection->traffic();
    account.bytes_sent += traffic.bytes_sent;
    account.bytes_received += traffic.bytes_received;
    account.transfer += Duration(traffic.busy_ns);
  }
  return account;
}

void CollectiveDriver::add_link(StoreLink& link, const CollectiveConnection& of) {
  const Connection& connection = *of.connection;
  link.to = fmt::format("worker:{}", of.worker);
  link.kind = std::string(connection.kind());
  link.encrypted = connection.encrypted();
  link.round_trip = connection.round_trip();
  link.bytes_sent += connection.traffic().bytes_sent;
  link.bytes_received += connection.traffic().bytes_received;
}

std::vector<StoreLink> CollectiveDriver::links() const {
  const std::lock_guard lock(mutex_);
  std::vector<StoreLink> links = gone_links_;
  for (std::size_t w = 0; w < current_.size(); ++w) {
    if (current_[w] != nullptr) add_link(links[w], *current_[w]);
  }
  std::erase_if(links, [](const StoreLink& link) { return link.to.empty(); });
  return links;
}

}  // namespace paceline
