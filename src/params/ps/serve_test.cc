#include "params/ps/serve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <memory>
#include <thread>

#include "base/deadline.h"
#include "base/testing/error_of.h"
#include "params/testing/raw_peer.h"

namespace paceline {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(PsTest, RefusesAnotherVersionClusterJobOrTaskNamingBothSides) {
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
  hello.role = "ps";
  EXPECT_THAT(refusal_of(hello), HasSubstr("a ps serves workers; the other is ps:1"));
  hello = good_hello(1);
  hello.ps = 1;
  EXPECT_THAT(refusal_of(hello), HasSubstr("this is ps:0, the other takes it for ps:1"));
  hello = good_hello(1);
  hello.workers = 9;
  EXPECT_THAT(refusal_of(hello), HasSubstr("workers here, 9 there"));
  hello = good_hello(1);
  hello.kept = 200;
  EXPECT_THAT(refusal_of(hello), HasSubstr("contributions of float32 keep 200 of each 256"));
  hello.kept = 8;
  hello.wire = DType::kUInt8;
  EXPECT_THAT(refusal_of(hello), HasSubstr("contributions of int8 keep 8 of each 256"));
  EXPECT_THAT(refusal_of(good_hello(2)), HasSubstr("worker:2 is not in the cluster spec"));
  EXPECT_THAT(refusal_of(good_hello(0)), HasSubstr("a newer worker:0 (pid "));
  expect_still_serving();
}

TEST_F(PsTest, HearsNoOtherHelloOfWhomItHasRefused) {
  Hello hello = good_hello(1);
  hello.cluster_id = "other";
  auto peer = stranger();
  peer->send(MessageType::kHello, encode(hello));
  peer->send(MessageType::kHello, encode(good_hello(1)));
  EXPECT_TRUE(peer->wait_closed());
  EXPECT_THAT(said(), Not(HasSubstr("worker:1 joined")));
}

TEST_F(PsTest, StrangersWhoSayNothingMakeRoomForOthers) {
  std::vector<std::unique_ptr<RawPeer>> silent;
  silent.reserve(80);
  for (int i = 0; i < 80; ++i) silent.push_back(stranger());
  // The link may accept connections that begin at about the same time in another order. So this
  // test counts how many were closed, not which.
  const auto closed = [&] {
    return std::ranges::count_if(silent, [](const auto& one) { return one->is_closed(); });
  };
  const Deadline deadline = Deadline::after(60s);
  while (closed() < 16 && !deadline.passed()) std::this_thread::yield();
  EXPECT_EQ(closed(), 16);
  EXPECT_THAT(said(), HasSubstr("more connections have come than can be listened to"));
  EXPECT_NE(member(), nullptr);
  EXPECT_FALSE(silent.back()->is_closed());
  expect_still_serving();
}

TEST_F(PsTest, RefusesOtherVariablesNamingTheFirstThatDiffers) {
  auto variables = some_variables();
  variables[1].rule = Sgd{.learning_rate = 0.25f};
  try {
    PsStore::join(store_options(1), variables);
    FAIL() << "joined with other variables";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kFailedPrecondition);
    EXPECT_THAT(error.what(), HasSubstr("ps:0"));
    EXPECT_THAT(error.what(), HasSubstr("the chief has 'embedding float32 (10,2) add"));
    EXPECT_THAT(error.what(), HasSubstr("worker:1 has 'embedding float32 (10,2) sgd"));
  }
  expect_still_serving();
}

TEST_F(PsTest, SaysWhichWorkerItLostAndGoesOn) {
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

TEST_F(PsTest, ANewerIncarnationReplacesTheOlder) {
  auto older = member();
  Hello hello = good_hello(1);
  hello.incarnation = 2;
  auto newer = stranger();
  newer->send(MessageType::kHello, encode(hello));
  EXPECT_TRUE(newer->wait_for(MessageType::kWelcome));
  EXPECT_TRUE(older->wait_for(MessageType::kRefuse));
  EXPECT_TRUE(older->wait_closed());
  expect_still_serving();
}

TEST_F(PsTest, AStepThatComesTwiceIsAppliedOnce) {
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

class PsEnd : public JobFixture {
 protected:
  /// Starts a ps whose time is clock_, and waits until it listens.
  std::future<PsSummary> start_with_clock(PsOptions options) {
    const auto listens = std::make_shared<std::promise<void>>();
    options.clock = &clock_;
    options.listening = [listens](const std::string&) { listens->set_value(); };
    std::future<PsSummary> ps = start_ps(options);
    EXPECT_EQ(listens->get_future().wait_for(60s), std::future_status::ready);
    return ps;
  }
  /// Connects as a task that ps:0 does not know. Returns when the ps has closed that connection, or
  /// has ended.
  void disturb() {
    const std::unique_ptr<Link> link = link_factory()({});
    try {
      RawPeer peer(*link, spec_.ps.front());
      peer.send(MessageType::kHello, encode(Hello{}));
      EXPECT_TRUE(peer.wait_closed());
    } catch (const Error&) {
      // Nobody listens any more.
    }
  }
};

TEST_F(PsEnd, AWorkerThatLosesItsPsSaysWhichAndWhen) {
  reconnect_timeout_ = 100ms;
  make_spec(1, 1);
  start_all_ps();
  const auto store = std::move(join_all(some_variables()).front());
  store->write(initial_states(some_variables()), 0);
  StepDriver driver(*store, false);
  driver.step();
  stop_all_ps();
  EXPECT_THROW(ps_tasks_.front().get(), Error);
  try {
    for (int i = 0; i < 1000; ++i) driver.step();
    FAIL() << "steps without a ps";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kAborted);
    EXPECT_THAT(error.what(), HasSubstr("lost ps:0 at ps0:1 in step "));
    EXPECT_THAT(error.what(), HasSubstr("last message "));
  }
  EXPECT_THROW(driver.step(), Error) << "the first error stays";
}

TEST_F(PsEnd, IsAbandonedWhenNobodyComes) {
  make_spec(1, 1);
  PsOptions options = ps_options(0);
  options.join_timeout = 300s;
  std::future<PsSummary> ps = start_with_clock(options);
  clock_.advance(299s);
  for (int i = 0; i < 2; ++i) disturb();  // after the second one, the ps has looked at its clock
  EXPECT_EQ(ps.wait_for(0s), std::future_status::timeout);
  clock_.advance(1s);
  disturb();
  ASSERT_EQ(ps.wait_for(60s), std::future_status::ready);
  EXPECT_THAT(error_of(ErrorCode::kUnavailable, [&] { ps.get(); }),
              AllOf(HasSubstr("ps:0 had no worker for 300 s (--join-timeout)"),
                    HasSubstr("worker:0 never came")));
}

TEST_F(PsEnd, TellsItsProgressWhenItsIntervalHasPassed) {
  make_spec(1, 1);
  PsOptions options = ps_options(0);
  options.progress_every.seconds = 30;
  options.progress = [this](const PsSummary& summary) {
    say("applied " + std::to_string(summary.applied));
  };
  ps_tasks_.push_back(start_with_clock(options));
  const auto store = std::move(join_all(some_variables()).front());
  store->write(initial_states(some_variables()), 0);
  StepDriver driver(*store, false);
  driver.step();
  driver.wait_applied();
  for (int i = 0; i < 2; ++i) disturb();
  EXPECT_THAT(said(), Not(HasSubstr("applied")));
  clock_.advance(30s);
  disturb();
  EXPECT_TRUE(wait_said("applied 1"));
  store->set_done();
  store->goodbye();
}

TEST_F(PsEnd, EndsAtTheLastStepWhenAllHaveLeftWithoutAGoodbye) {
  reconnect_timeout_ = 100ms;
  make_spec(1, 2);
  start_all_ps();
  PsStoreOptions options = store_options(0);
  options.last_step = 3;
  auto store = PsStore::join(options, some_variables());
  store->write(initial_states(some_variables()), 0);
  StepDriver driver(*store, false);
  for (int i = 0; i < 3; ++i) driver.step();
  store.reset();
  EXPECT_EQ(ps_tasks_.front().get().applied, 3);
}

TEST_F(PsEnd, AWorkerGivesUpOnAPsThatNeverComes) {
  make_spec(1, 1);
  PsStoreOptions options = store_options(0);
  options.join_timeout = 50ms;
  try {
    PsStore::join(options, some_variables());
    FAIL() << "joined nobody";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(error.what(), HasSubstr("ps:0 at ps0:1 could not be reached"));
  }
}

/// A link that never connects. The first try fails with a reason of its own; at every later try
/// nobody listens.
class FlightyLink : public Link {
 public:
  std::string kind() const override { return "flighty"; }
  std::string listen(const std::string& /*address*/, Acceptor /*acceptor*/) override { return ""; }
  std::shared_ptr<Connection> connect(const std::string& address, Receiver& /*receiver*/,
                                      Deadline /*deadline*/) override {
    throw Error(ErrorCode::kUnavailable,
                std::exchange(met_, true) ? "nobody listens at " + address : "wants no memory");
  }
  bool help() override { return false; }

 private:
  bool met_ = false;
};

TEST_F(PsEnd, AWorkerThatGivesUpSaysWhatItWasToldBefore) {
  make_spec(1, 1);
  PsStoreOptions options = store_options(0);
  options.join_timeout = 1s;  // long enough for several tries
  options.link_factory = [](const LinkOptions&) { return std::make_unique<FlightyLink>(); };
  try {
    PsStore::join(options, some_variables());
    FAIL() << "joined nobody";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("nobody listens at ps0:1 (before: wants no memory)"));
  }
}

TEST_F(PsEnd, SharesOfItsTimeSumToOne) {
  make_spec(1, 1);
  start_all_ps();
  const auto store = std::move(join_all(some_variables()).front());
  store->write(initial_states(some_variables()), 0);
  StepDriver driver(*store, true);
  for (int i = 0; i < 12; ++i) driver.step();
  store->goodbye();
  const PsSummary summary = ps_tasks_.front().get();
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
