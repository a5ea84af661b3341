// Every kind of link passes one suite of tests (conformance_*_test.cc), over the list of links
// below. A new kind of link adds one line to the list.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <ostream>
#include <vector>

#include "base/buffer.h"
#include "net/inproc/inproc_link.h"
#include "net/link.h"
#include "net/tcp/tcp_header.h"
#include "net/tls/link_security.h"

namespace paceline {

struct LinkCase {
  std::string kind;
  std::string any_address;                        // a listener at this address gets a free address
  std::string nobody;                             // an address at which nobody listens
  bool shares = false;                            // shares memory between tasks of one host
  std::size_t framing_bytes = kFrameHeaderBytes;  // bytes that travel with each frame
};

inline const std::vector<LinkCase>& links_to_test() {
  static const std::vector<LinkCase> cases = {
      {"inproc", "task:0", "task:9", true},
      {"tcp", "127.0.0.1:0", "127.0.0.1:1", false, kTcpFramingBytes},
      {"tls", "127.0.0.1:0", "127.0.0.1:1", false, kTcpFramingBytes},
      {"shm", "127.0.0.1:0", "127.0.0.1:1", true},
      {"auto", "127.0.0.1:0", "127.0.0.1:1", true},
  };
  return cases;
}

inline std::ostream& operator<<(std::ostream& out, const LinkCase& one) { return out << one.kind; }

/// The longest time that a test waits. No test depends on how long something takes.
constexpr Duration kPatience = std::chrono::seconds(60);

inline Deadline soon() { return Deadline::after(kPatience); }

/// Returns security with a key, which is the same for all encrypting links of a test.
inline std::shared_ptr<const LinkSecurity> test_security() {
  static const auto security = [] {
    auto made = std::make_shared<LinkSecurity>();
    made->tls = Tls::kAlways;
    made->key = SecretKey::make();
    return made;
  }();
  return security;
}

/// Makes a link as make_link does; "tls" is a tcp link that also encrypts within the host.
inline std::unique_ptr<Link> make_link_to_test(const std::string& kind, LinkOptions options) {
  if (kind != "tls") return make_link(kind, options);
  options.security = test_security();
  return make_link("tcp", options);
}

inline std::unique_ptr<Link> make_mortal_link(const std::string& kind,
                                              Duration dead_after = LinkOptions{}.dead_after) {
  LinkOptions options;
  options.dead_after = dead_after;
  return make_link_to_test(kind, options);
}

/// Makes links that reach each other. Thread-safe.
class TestNetwork {
 public:
  std::unique_ptr<Link> make(const std::string& kind, const LinkOptions& options = {}) const {
    return kind == "inproc" ? make_inproc_link(options, hub_) : make_link_to_test(kind, options);
  }

 private:
  const std::shared_ptr<InprocHub> hub_ = std::make_shared<InprocHub>();
};

/// Keeps everything that it receives. Thread-safe.
class TestReceiver : public Receiver {
 public:
  struct Frame {
    FrameHeader header;
    std::vector<std::byte> payload;
  };

  /// Keeps the first bytes of each payload, at most this many.
  explicit TestReceiver(std::size_t most_kept = 1 << 16) : most_kept_(most_kept) {}

  std::span<std::byte> place_payload(const FrameHeader& header) override {
    if (place_.size() < header.payload_bytes) place_ = Buffer(header.payload_bytes);
    return place_.span().first(header.payload_bytes);
  }

  void on_frame(const FrameHeader& header, std::span<const std::byte> payload) override {
    std::unique_lock lock(mutex_);
    held_.wait_for(lock, kPatience, [&] { return !hold_; });
    const auto kept = payload.first(std::min(payload.size(), most_kept_));
    frames_.push_back({header, {kept.begin(), kept.end()}});
    changed_.notify_all();
    if (refuses_) throw Error(ErrorCode::kFailedPrecondition, "the test refuses this frame");
    if (reply_ != nullptr) reply_->send(header, {});
  }

  void on_shared(std::uint32_t id, std::shared_ptr<const SharedMemory> memory) override {
    std::lock_guard lock(mutex_);
    shared_.push_back({id, frames_.size(), std::move(memory)});
    changed_.notify_all();
  }

  void on_closed(const Error& error) override {
    std::lock_guard lock(mutex_);
    ++times_closed_;
    closed_ = error;
    reply_.reset();
    changed_.notify_all();
  }

  bool wait_frames(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return frames_.size() >= count; });
  }
  struct Shared {
    std::uint32_t id;
    std::size_t frames_before;
    std::shared_ptr<const SharedMemory> memory;
  };
  /// Waits for `count` shared memories. Returns all that have arrived, which are fewer if the time
  /// is over.
  std::vector<Shared> wait_shared(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kPatience, [&] { return shared_.size() >= count; });
    return shared_;
  }
  /// Returns the error of on_closed, or kInternal when it was not called in time.
  Error wait_closed() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kPatience, [&] { return closed_.has_value(); });
    return closed_.value_or(Error(ErrorCode::kInternal, "on_closed was not called in time"));
  }
  std::vector<Frame> frames() const {
    std::lock_guard lock(mutex_);
    return frames_;
  }
  std::size_t count() const {
    std::lock_guard lock(mutex_);
    return frames_.size();
  }
  int times_closed() const {
    std::lock_guard lock(mutex_);
    return times_closed_;
  }

  /// After hold(true), on_frame does not return until hold(false).
  void hold(bool hold) {
    std::lock_guard lock(mutex_);
    hold_ = hold;
    held_.notify_all();
  }
  void refuse_frames() { refuses_ = true; }
  /// From now on answers each frame over `connection`, with the frame's header alone.
  void reply_to(std::shared_ptr<Connection> connection) {
    std::lock_guard lock(mutex_);
    reply_ = std::move(connection);
  }

 private:
  const std::size_t most_kept_;
  Buffer place_;
  std::atomic<bool> refuses_{false};
  mutable std::mutex mutex_;
  std::condition_variable changed_, held_;
  bool hold_ = false;
  std::vector<Frame> frames_;
  std::vector<Shared> shared_;
  std::optional<Error> closed_;
  int times_closed_ = 0;
  std::shared_ptr<Connection> reply_;
};

/// Counts the calls of `sent`.
class SentCounter {
 public:
  static void add(void* counter) {
    auto* self = static_cast<SentCounter*>(counter);
    std::lock_guard lock(self->mutex_);
    ++self->count_;
    self->changed_.notify_all();
  }
  int count() const {
    std::lock_guard lock(mutex_);
    return count_;
  }
  bool wait(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return count_ >= count; });
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

/// A listening link with a receiver for each connection that it accepts.
class Listener {
 public:
  Listener(std::unique_ptr<Link> link, const std::string& address) : link_(std::move(link)) {
    address_ = link_->listen(address, [this](std::shared_ptr<Connection> connection) {
      return accept(std::move(connection));
    });
  }
  ~Listener() { link_.reset(); }

  const std::string& address() const { return address_; }
  void destroy_link() { link_.reset(); }
  void reply() { reply_ = true; }
  /// These two functions wait for the i-th peer, and return its receiver or its connection; null if
  /// that peer did not arrive in time.
  TestReceiver* receiver(std::size_t i) {
    std::unique_lock lock(mutex_);
    accepted_.wait_for(lock, kPatience, [&] { return receivers_.size() > i; });
    return receivers_.size() > i ? receivers_[i].get() : nullptr;
  }
  std::shared_ptr<Connection> connection(std::size_t i) {
    return receiver(i) == nullptr ? nullptr : connections_[i];
  }
  std::size_t count() const {
    std::lock_guard lock(mutex_);
    return receivers_.size();
  }

 private:
  Receiver* accept(std::shared_ptr<Connection> connection) {
    std::lock_guard lock(mutex_);
    receivers_.push_back(std::make_unique<TestReceiver>());
    if (reply_) receivers_.back()->reply_to(connection);
    connections_.push_back(std::move(connection));
    accepted_.notify_all();
    return receivers_.back().get();
  }

  std::atomic<bool> reply_{false};
  mutable std::mutex mutex_;
  std::condition_variable accepted_;
  std::vector<std::unique_ptr<TestReceiver>> receivers_;
  std::vector<std::shared_ptr<Connection>> connections_;
  std::unique_ptr<Link> link_;
  std::string address_;
};

/// A connection between two links, seen from the side that has connected. `far` is the receiver of
/// the other side.
struct ConnectedEnds {
  ConnectedEnds(std::unique_ptr<Listener> listens, std::unique_ptr<Link> connects)
      : listener(std::move(listens)),
        link(std::move(connects)),
        connection(link->connect(listener->address(), receiver, soon())),
        far(listener->receiver(0)) {
    if (far == nullptr) throw Error(ErrorCode::kDeadlineExceeded, "the listener accepted nobody");
  }

  std::unique_ptr<Listener> listener;
  TestReceiver receiver;
  std::unique_ptr<Link> link;
  std::shared_ptr<Connection> connection;
  TestReceiver* far;
};

/// Makes the links of a test, which are all of one kind and reach each other.
class Conformance : public testing::TestWithParam<LinkCase> {
 protected:
  std::unique_ptr<Link> make(const LinkOptions& options) const {
    return network_.make(GetParam().kind, options);
  }
  std::unique_ptr<Link> make(int threads = 1) const {
    LinkOptions options;
    options.threads = threads;
    return make(options);
  }
  std::unique_ptr<Listener> listen(int threads = 1) const {
    return std::make_unique<Listener>(make(threads), GetParam().any_address);
  }
  ConnectedEnds connect(int threads = 1) const { return {listen(), make(threads)}; }

 private:
  const TestNetwork network_{};
};

inline std::vector<std::byte> pattern(std::size_t bytes, int seed) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = std::byte((i * 31 + std::size_t(seed)) & 255);
  return data;
}

}  // namespace paceline
