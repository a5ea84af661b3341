#include "params/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <set>

#include "base/philox.h"
#include "params/job_fixture.h"
#include "params/message.h"
#include "params/wire.h"

namespace paceline {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

std::vector<VariableSpec> some_variables() {
  return {{.name = "w", .shape = {4, 3}, .rule = Add{}},
          {.name = "embedding", .shape = {10, 2}, .rule = Add{}, .sparse = true}};
}

/// A peer that says whatever a test wants.
class Stranger : public Receiver {
 public:
  Stranger(Link& link, const std::string& address)
      : connection_(link.connect(address, *this, Deadline::after(60s))) {}

  ~Stranger() override {
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
  /// Waits for a message of the type; its text if it is a refusal. Empty: the connection ended.
  bool wait_for(MessageType type) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, 60s, [&] { return closed_ || types_.contains(type); });
    return types_.contains(type);
  }
  bool wait_closed() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 60s, [&] { return closed_; });
  }
  std::string refusal() {
    const std::lock_guard lock(mutex_);
    return refusal_;
  }
  void close() { connection_->close(Deadline::after(5s)); }

  std::span<std::byte> place_payload(const FrameHeader& header) override {
    received_.resize(header.payload_bytes);
    return received_;
  }
  void on_frame(const FrameHeader& header, std::span<const std::byte> payload) override {
    const std::lock_guard lock(mutex_);
    const MessageType type{header.type};
    types_.insert(type);
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
  std::set<MessageType> types_;
  std::string refusal_;
  bool closed_ = false;
  std::vector<std::byte> received_;
  std::vector<std::unique_ptr<std::vector<std::byte>>> sent_;
  std::shared_ptr<Connection> connection_;
};

Hello good_hello(int worker = 0) {
  Hello hello;
  hello.job = "worker";
  hello.index = worker;
  hello.cluster_id = "test";
  hello.incarnation = 1;
  return hello;
}

Declare good_declaration() {
  Declare declare{.last_step = 0, .variables = some_variables(), .pieces = {}};
  declare.pieces = place_variables(declare.variables, 1);
  return declare;
}

std::vector<std::byte> step_begin(bool clipped = false) {
  std::vector<std::byte> bytes;
  WireWriter writer(bytes);
  writer.put(std::uint8_t(clipped));
  writer.put(std::int64_t{1});
  writer.put(std::uint32_t{2});
  writer.put(1.0f);
  writer.put(1.0f);
  return bytes;
}

std::vector<std::byte> step_end(std::uint32_t piece, bool contributed) {
  std::vector<std::byte> bytes;
  WireWriter writer(bytes);
  writer.put(1.0f);
  writer.put(std::uint32_t{1});
  writer.put(piece);
  writer.put(std::uint8_t(contributed));
  writer.put(std::uint32_t{0});
  return bytes;
}

class ServerTest : public JobFixture {
 protected:
  void SetUp() override {
    make_spec(1, 2);
    start_all_ps();
    link_ = link_factory()(LinkOptions{});
    chief_ = ServerStore::join(store_options(0), some_variables());
  }
  void TearDown() override { link_.reset(); }
  std::unique_ptr<Stranger> stranger() {
    return std::make_unique<Stranger>(*link_, spec_.ps.front());
  }
  /// A worker:1 that has agreed on the variables.
  std::unique_ptr<Stranger> member() {
    auto peer = stranger();
    peer->send(MessageType::kHello, encode(good_hello(1)));
    EXPECT_TRUE(peer->wait_for(MessageType::kWelcome));
    peer->send(MessageType::kDeclare, encode(good_declaration()));
    EXPECT_TRUE(peer->wait_for(MessageType::kDeclared));
    return peer;
  }
  void initialise() { chief_->write(initial_states(some_variables()), 0); }
  /// The ps goes on serving after whatever happened to others.
  void expect_still_serving() {
    initialise();
    StepDriver driver(*chief_, false);
    EXPECT_EQ(driver.step(), 1);
  }

  std::unique_ptr<Link> link_;
  std::unique_ptr<ServerStore> chief_;
};

TEST_F(ServerTest, RefusesAnotherVersionClusterJobOrTaskNamingBothSides) {
  const auto refusal_of = [&](const Hello& hello) {
    auto peer = stranger();
    peer->send(MessageType::kHello, encode(hello));
    EXPECT_TRUE(peer->wait_for(MessageType::kRefuse));
    EXPECT_TRUE(peer->wait_closed());
    return peer->refusal();
  };
  Hello hello = good_hello(1);
  hello.version = 77;
  EXPECT_THAT(refusal_of(hello), HasSubstr("protocol version " + std::to_string(kProtocolVersion) +
                                           " here, 77 there"));
  hello = good_hello(1);
  hello.cluster_id = "other";
  EXPECT_THAT(refusal_of(hello), HasSubstr("cluster id 'test' here, 'other' there"));
  hello = good_hello(1);
  hello.job = "ps";
  EXPECT_THAT(refusal_of(hello), HasSubstr("a ps serves workers; the other is ps:1"));
  EXPECT_THAT(refusal_of(good_hello(2)), HasSubstr("worker:2 is not in the cluster spec"));
  EXPECT_THAT(refusal_of(good_hello(0)), HasSubstr("worker:0 has joined"));
  expect_still_serving();
}

TEST_F(ServerTest, RefusesOtherVariablesNamingTheFirstThatDiffers) {
  auto variables = some_variables();
  variables[1].rule = Sgd{.learning_rate = 0.25f};
  try {
    ServerStore::join(store_options(1), variables);
    FAIL() << "joined with other variables";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kFailedPrecondition);
    EXPECT_THAT(error.what(), HasSubstr("ps:0"));
    EXPECT_THAT(error.what(), HasSubstr("the chief has 'embedding float32 (10,2) add"));
    EXPECT_THAT(error.what(), HasSubstr("worker:1 has 'embedding float32 (10,2) sgd"));
  }
  expect_still_serving();
}

TEST_F(ServerTest, SaysWhichWorkerItLostAndGoesOn) {
  initialise();
  {
    auto peer = member();
    peer->send(MessageType::kStepBegin, step_begin(), {.step = 41});
    peer->send(MessageType::kChunk, std::vector<std::byte>(48), {.id = 0, .step = 41});
    ASSERT_TRUE(peer->wait_for(MessageType::kValues));
    peer->close();
    ASSERT_TRUE(wait_said("lost worker:1"));
  }
  EXPECT_THAT(said(), HasSubstr("in step 41, last message chunk: "));
  expect_still_serving();
}

TEST_F(ServerTest, ANewerIncarnationReplacesTheOlder) {
  auto older = member();
  Hello hello = good_hello(1);
  hello.incarnation = 2;
  auto newer = stranger();
  newer->send(MessageType::kHello, encode(hello));
  EXPECT_TRUE(newer->wait_for(MessageType::kWelcome));
  EXPECT_TRUE(older->wait_closed());
  expect_still_serving();
}

TEST_F(ServerTest, AStepThatComesTwiceIsAppliedOnce) {
  initialise();
  const auto before = everything(*chief_);
  auto peer = member();
  std::vector<float> ones(12, 1.0f);
  const auto bytes = std::as_bytes(std::span(ones));
  for (int i = 0; i < 2; ++i) {
    peer->send(MessageType::kStepBegin, step_begin(i == 1), {.step = 5});
    peer->send(MessageType::kChunk, {bytes.begin(), bytes.end()}, {.id = 0, .step = 5});
    peer->send(MessageType::kStepEnd, step_end(0, true), {.step = 5});
  }
  peer->send(MessageType::kGoodbye, {});
  peer->close();
  ASSERT_TRUE(peer->wait_closed());
  const auto after = everything(*chief_);
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(after[0][i], before[0][i] + 1.0f);
}

struct Attack {
  std::string name;
  std::function<void(Stranger&)> send;
};

class HostilePeer : public ServerTest, public ::testing::WithParamInterface<Attack> {};

TEST_P(HostilePeer, EndsOnlyItsOwnConnection) {
  initialise();
  auto peer = GetParam().name.starts_with("stranger") ? stranger() : member();
  GetParam().send(*peer);
  EXPECT_TRUE(peer->wait_closed());
  expect_still_serving();
}

std::vector<std::byte> words(std::initializer_list<std::uint32_t> values) {
  const auto bytes = std::as_bytes(std::span(values.begin(), values.size()));
  return {bytes.begin(), bytes.end()};
}

std::vector<Attack> attacks() {
  const auto chunk = [](std::uint32_t id, std::uint64_t offset, std::size_t bytes) {
    return [=](Stranger& peer) {
      peer.send(MessageType::kStepBegin, step_begin(true), {.step = 0});
      peer.send(MessageType::kChunk, std::vector<std::byte>(bytes), {.id = id, .offset = offset});
    };
  };
  const auto lies_at = [](std::uint32_t id, std::uint64_t offset, std::vector<std::byte> rows,
                          int times = 1) {
    return [=](Stranger& peer) {
      peer.share(0, 60);
      peer.send(MessageType::kStepBegin, step_begin(), {.step = 0});
      for (int i = 0; i < times; ++i) {
        peer.send(MessageType::kContribution, rows, {.id = id, .offset = offset});
      }
    };
  };
  const auto message = [](MessageType type, std::vector<std::byte> payload,
                          FrameHeader header = {}) {
    return [=](Stranger& peer) { peer.send(type, payload, header); };
  };
  return {
      {"stranger_chunk_before_hello", message(MessageType::kChunk, std::vector<std::byte>(48))},
      {"stranger_pull_before_hello", message(MessageType::kPull, words({0}))},
      {"stranger_empty_frame", message(MessageType::kGoodbye, {})},
      {"stranger_torn_hello", message(MessageType::kHello, words({kProtocolVersion, 1}))},
      {"stranger_long_hello",
       message(MessageType::kHello, std::vector<std::byte>(kMaxHelloBytes + 1))},
      {"unknown_type", message(MessageType{999}, {})},
      {"message_of_a_ps", message(MessageType::kValues, std::vector<std::byte>(48))},
      {"second_hello", message(MessageType::kHello, encode(good_hello(1)))},
      {"chunk_outside_a_step", message(MessageType::kChunk, std::vector<std::byte>(48))},
      {"chunk_beyond_the_piece", chunk(0, 0, 52)},
      {"chunk_at_a_wrong_offset", chunk(0, 4, 4)},
      {"chunk_at_an_offset_that_wraps", chunk(0, ~std::uint64_t{3}, 8)},
      {"chunk_of_half_a_float", chunk(0, 0, 6)},
      {"chunk_of_an_unknown_piece", chunk(12345, 0, 8)},
      {"chunk_of_rows_without_ids", chunk(1, 0, 8)},
      {"rows_out_of_range",
       [](Stranger& peer) {
         peer.send(MessageType::kStepBegin, step_begin(), {.step = 0});
         peer.send(MessageType::kRowIds, words({3, 10}), {.id = 1});
       }},
      {"rows_twice",
       [](Stranger& peer) {
         peer.send(MessageType::kStepBegin, step_begin(), {.step = 0});
         peer.send(MessageType::kRowIds, words({3, 3}), {.id = 1});
       }},
      {"stranger_shares_memory", [](Stranger& peer) { peer.share(0, 60); }},
      {"memory_with_a_wrong_number", [](Stranger& peer) { peer.share(1, 60); }},
      {"memories_without_end",
       [](Stranger& peer) {
         for (std::uint32_t id = 0; id <= kMostSharedMemories; ++id) peer.share(id, 1);
       }},
      {"contribution_in_no_memory",
       [](Stranger& peer) {
         peer.send(MessageType::kStepBegin, step_begin(), {.step = 0});
         peer.send(MessageType::kContribution, {}, {.flags = 2});
       }},
      {"contribution_beyond_the_memory", lies_at(0, 16, {})},
      {"contribution_at_an_offset_that_wraps", lies_at(0, ~std::uint64_t{3}, {})},
      {"contribution_at_half_a_float", lies_at(0, 2, {})},
      {"contribution_to_an_unknown_piece", lies_at(12345, 0, {})},
      {"contribution_of_rows_to_a_dense_one", lies_at(0, 0, words({1}))},
      {"contribution_of_rows_out_of_range", lies_at(1, 0, words({3, 10}))},
      {"contribution_of_more_rows_than_memory", lies_at(1, 0, words({0, 1, 2, 3, 4, 5, 6, 7}))},
      {"contribution_that_comes_twice", lies_at(0, 0, {}, 2)},
      {"step_end_without_the_contribution",
       [](Stranger& peer) {
         peer.send(MessageType::kStepBegin, step_begin(), {.step = 0});
         peer.send(MessageType::kStepEnd, step_end(0, true), {.step = 0});
       }},
      {"step_end_without_a_step", message(MessageType::kStepEnd, step_end(0, false))},
      {"pull_of_an_unknown_piece", message(MessageType::kPull, words({7}))},
      {"pull_rows_out_of_range", message(MessageType::kPullRows, words({99}), {.id = 1})},
      {"write_by_another_than_the_chief", message(MessageType::kWrite, words({1}), {.id = 0})},
      {"initialised_by_another_than_the_chief", message(MessageType::kWriteEnd, words({9, 0}))},
      {"random_bytes",
       [](Stranger& peer) {
         for (std::uint64_t i = 0; i < 200; ++i) {
           const PhiloxBlock random = philox(3, i, 0);
           peer.send(MessageType{std::uint16_t(4 + random[0] % 29)},
                     words({random[1], random[2], random[3]}), {.id = random[1] % 3});
         }
       }},
  };
}

INSTANTIATE_TEST_SUITE_P(Attacks, HostilePeer, ::testing::ValuesIn(attacks()),
                         [](const auto& test) { return test.param.name; });

class ServerEnd : public JobFixture {};

TEST_F(ServerEnd, AWorkerThatLosesItsPsSaysWhichAndWhen) {
  make_spec(1, 1);
  start_all_ps();
  const auto store = std::move(join_all(some_variables()).front());
  store->write(initial_states(some_variables()), 0);
  StepDriver driver(*store, false);
  driver.step();
  stop_all_ps();
  EXPECT_THROW(servers_.front().get(), Error);
  try {
    for (int i = 0; i < 1000; ++i) driver.step();
    FAIL() << "steps without a ps";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.what(), HasSubstr("lost ps:0 at ps0:1 in step "));
    EXPECT_THAT(error.what(), HasSubstr("last message "));
  }
  EXPECT_THROW(driver.step(), Error) << "the first error stays";
}

TEST_F(ServerEnd, IsAbandonedWhenNobodyComes) {
  make_spec(1, 1);
  ServerOptions options = server_options(0);
  options.join_timeout = 50ms;
  try {
    serve(options);
    FAIL() << "ended well";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.what(), HasSubstr("ps:0 had no worker"));
    EXPECT_THAT(error.what(), HasSubstr("worker:0 never came"));
  }
}

TEST_F(ServerEnd, EndsAtTheLastStepWhenAllHaveLeftWithoutAGoodbye) {
  make_spec(1, 2);
  start_all_ps();
  ServerStoreOptions options = store_options(0);
  options.last_step = 3;
  auto store = ServerStore::join(options, some_variables());
  store->write(initial_states(some_variables()), 0);
  StepDriver driver(*store, false);
  for (int i = 0; i < 3; ++i) driver.step();
  store.reset();
  EXPECT_EQ(servers_.front().get().applied, 3);
}

TEST_F(ServerEnd, AWorkerGivesUpOnAPsThatNeverComes) {
  make_spec(1, 1);
  ServerStoreOptions options = store_options(0);
  options.join_timeout = 50ms;
  try {
    ServerStore::join(options, some_variables());
    FAIL() << "joined nobody";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.what(), HasSubstr("ps:0 at ps0:1 could not be reached"));
  }
}

TEST_F(ServerEnd, SharesOfItsTimeSumToOne) {
  make_spec(1, 1);
  start_all_ps();
  const auto store = std::move(join_all(some_variables()).front());
  store->write(initial_states(some_variables()), 0);
  StepDriver driver(*store, true);
  for (int i = 0; i < 12; ++i) driver.step();
  store->goodbye();
  const ServerSummary summary = servers_.front().get();
  EXPECT_NEAR(summary.apply_share + summary.queue_share + summary.idle_share, 1.0, 1e-9);
  EXPECT_GT(summary.apply_share, 0.0);
  EXPECT_GT(summary.seconds, 0.0);
  ASSERT_TRUE(summary.use.has_value());
  EXPECT_GT(summary.use->seconds, 0.0);
  EXPECT_GT(summary.bytes_received, 0);
  EXPECT_GT(summary.bytes_sent, 0);
}

}  // namespace
}  // namespace paceline
