// For tests: a ps with a chief, and peers that say whatever a test wants.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "params/strategy/strategy_kind.h"
#include "params/testing/job_fixture.h"
#include "params/wire/fields.h"
#include "params/wire/message.h"

namespace paceline {

inline std::vector<VariableSpec> some_variables() {
  return {{.name = "w", .shape = {4, 3}, .rule = Add{}},
          {.name = "embedding", .shape = {10, 2}, .rule = Add{}, .sparse = true}};
}

/// A peer that says whatever a test wants.
class RawPeer : public Receiver {
 public:
  RawPeer(Link& link, const std::string& address)
      : connection_(link.connect(address, *this, Deadline::after(std::chrono::seconds(60)))) {}

  ~RawPeer() override {
    close();
    wait_closed();
  }
  void send(MessageType type, std::vector<std::byte> payload, FrameHeader header = {}) {
    header.type = std::uint16_t(type);
    header.payload_bytes = std::uint32_t(payload.size());
    sent_.push_back(std::make_unique<std::vector<std::byte>>(std::move(payload)));
    connection_->send(header, *sent_.back());
  }
  void share(std::uint32_t id, std::size_t bytes) {
    connection_->share(id, SharedMemory::create(bytes));
  }
  /// Waits for a message of the type. Returns false if the connection ends first.
  bool wait_for(MessageType type) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(60),
                      [&] { return closed_ || std::ranges::count(types_, type) > 0; });
    return std::ranges::count(types_, type) > 0;
  }
  /// The types of all messages so far, in the order in which they arrived.
  std::vector<MessageType> types() {
    const std::lock_guard lock(mutex_);
    return types_;
  }
  bool wait_closed() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60), [&] { return closed_; });
  }
  /// If `deaf` is true, takes no more frames; if it is false, takes frames again.
  void set_deaf(bool deaf) {
    const std::lock_guard lock(mutex_);
    deaf_ = deaf;
    changed_.notify_all();
  }
  bool is_closed() {
    const std::lock_guard lock(mutex_);
    return closed_;
  }
  std::string refusal() {
    const std::lock_guard lock(mutex_);
    return refusal_;
  }
  void close() { connection_->close(Deadline::after(std::chrono::seconds(5))); }

  std::span<std::byte> place_payload(const FrameHeader& header) override {
    received_.resize(header.payload_bytes);
    return received_;
  }
  void on_frame(const FrameHeader& header, std::span<const std::byte> payload) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !deaf_; });
    const MessageType type{header.type};
    types_.push_back(type);
    if (type == MessageType::kRefuse) refusal_ = decode_text(payload, type);
    changed_.notify_all();
  }
  void on_shared(std::uint32_t, std::shared_ptr<const SharedMemory>) override {}
  void on_closed(const Error&) override {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<MessageType> types_;
  std::string refusal_;
  bool closed_ = false, deaf_ = false;
  std::vector<std::byte> received_;
  std::vector<std::unique_ptr<std::vector<std::byte>>> sent_;
  std::shared_ptr<Connection> connection_;
};

inline Hello good_hello(int worker = 0) {
  Hello hello;
  hello.role = "worker";
  hello.index = worker;
  hello.cluster_id = "test";
  hello.incarnation = 1;
  return hello;
}

inline Declare good_declaration() {
  Declare declare{.last_step = 0, .variables = some_variables(), .pieces = {}};
  declare.pieces = place_variables(declare.variables, 1);
  return declare;
}

inline std::vector<std::byte> step_begin(bool clipped = false) {
  std::vector<std::byte> bytes;
  encode(StepBegin{.clipped = clipped, .examples = 1, .learning_rates = {1, 1}}, bytes);
  return bytes;
}

inline std::vector<std::byte> step_end(std::uint32_t piece, bool contributed) {
  std::vector<std::byte> bytes;
  encode(StepEnd{.entries = {{.piece = piece, .contributed = contributed, .next_rows = {}}}},
         bytes);
  return bytes;
}

class PsTest : public JobFixture {
 protected:
  void SetUp() override {
    make_spec(1, 2);
    start_all_ps();
    link_ = link_factory()(LinkOptions{});
    chief_ = PsStore::join(store_options(0), some_variables());
  }
  void TearDown() override { link_.reset(); }
  std::unique_ptr<RawPeer> stranger() {
    return std::make_unique<RawPeer>(*link_, spec_.ps.front());
  }
  /// Returns a worker:1 that has agreed on the variables.
  std::unique_ptr<RawPeer> member() {
    auto peer = stranger();
    peer->send(MessageType::kHello, encode(good_hello(1)));
    EXPECT_TRUE(peer->wait_for(MessageType::kWelcome));
    peer->send(MessageType::kDeclare, encode(good_declaration()));
    EXPECT_TRUE(peer->wait_for(MessageType::kDeclared));
    return peer;
  }
  void initialise() { chief_->write(initial_states(some_variables()), 0); }
  /// Expects that the ps still serves, whatever happened to other peers.
  void expect_still_serving() {
    initialise();
    StepDriver driver(*chief_, false);
    EXPECT_EQ(driver.step(), 1);
  }

  std::unique_ptr<Link> link_;
  std::unique_ptr<PsStore> chief_;
};

/// A PsTest in synchronous rounds. `needed` contributions close a round; 0: those of all workers.
class RoundsPsTest : public PsTest {
 protected:
  explicit RoundsPsTest(int needed = 0) : needed_(needed) {}
  void SetUp() override {
    make_spec(1, 2);
    start_all_ps();
    link_ = link_factory()(LinkOptions{});
    PsStoreOptions options = store_options(0);
    options.aggregation = rounds_of(spec_, needed_, LateContribution::kDrop);
    chief_ = PsStore::join(options, some_variables());
  }
  /// Returns a worker:1 that may train, once the chief has initialised the variables.
  std::unique_ptr<RawPeer> member_of_rounds() {
    auto peer = stranger();
    peer->send(MessageType::kHello, encode(good_hello(1)));
    Declare declare = good_declaration();
    declare.aggregation = rounds_of(spec_, needed_, LateContribution::kDrop);
    EXPECT_TRUE(peer->wait_for(MessageType::kWelcome));
    peer->send(MessageType::kDeclare, encode(declare));
    EXPECT_TRUE(peer->wait_for(MessageType::kInitialised));
    return peer;
  }

 private:
  const int needed_;
};

}  // namespace paceline
