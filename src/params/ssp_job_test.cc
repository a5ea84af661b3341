// Tests bounded staleness with real tasks: threads over inproc links, one of which is slowed down.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "params/testing/fast_clock.h"
#include "params/testing/job_fixture.h"

namespace paceline {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr std::int64_t kSlowSteps = 12;  // of the slow worker

/// The number of steps that each worker has made.
class Progress {
 public:
  void made(int worker) {
    const std::lock_guard lock(mutex_);
    ++steps_[worker];
    lead_ = std::max(lead_, steps_[0] - steps_[1]);
    changed_.notify_all();
  }
  void stop_counting() {
    const std::lock_guard lock(mutex_);
    counted_lead_ = lead_;
  }
  bool wait_for_fast(std::int64_t steps) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 60s, [&] { return steps_[0] >= steps; });
  }
  std::int64_t lead() const { return counted_lead_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t steps_[2] = {};
  std::int64_t lead_ = 0, counted_lead_ = 0;
};

std::vector<VariableSpec> variable_w() { return {{.name = "w", .shape = {64, 8}}}; }

class SspJob : public JobFixture, public ::testing::WithParamInterface<int> {
 protected:
  PsStoreOptions options(int worker) {
    PsStoreOptions options = store_options(worker);
    options.aggregation = {AggregationKind::kBounded, GetParam()};
    return options;
  }
  void start() {
    make_spec(2, 2);
    start_all_ps();
    fast_ = PsStore::join(options(0), variable_w());
    fast_->write(initial_states(variable_w()), 0);
    slow_ = PsStore::join(options(1), variable_w());
    slow_->wait_initialised();
  }
  /// In a thread of its own, the fast worker makes steps as far as it is allowed to.
  std::thread run_fast(std::int64_t steps) {
    return std::thread([this, steps] {
      StepDriver driver(*fast_, false);
      for (std::int64_t i = 0; i < steps; ++i) {
        driver.step();
        progress_.made(0);
      }
    });
  }
  Progress progress_;
  std::unique_ptr<PsStore> fast_, slow_;
};

INSTANTIATE_TEST_SUITE_P(Staleness, SspJob, ::testing::Values(0, 1, 3));

TEST_P(SspJob, TheFastWorkerWaitsForTheSlowOneAndNoLonger) {
  start();
  std::thread fast = run_fast(kSlowSteps + GetParam() + 20);
  {
    StepDriver driver(*slow_, false);
    for (std::int64_t step = 0; step < kSlowSteps; ++step) {
      // The fast worker goes as far as it may while the slow one stands still.
      ASSERT_TRUE(progress_.wait_for_fast(step + GetParam() + 1));
      // The step is counted before it is made, since the fast worker may go on before this thread
      // has returned from the step.
      progress_.made(1);
      driver.step();
    }
    ASSERT_TRUE(progress_.wait_for_fast(kSlowSteps + GetParam() + 1));
    progress_.stop_counting();
  }
  // Nobody waits for a worker that has left.
  slow_->set_done();
  slow_->goodbye();
  fast.join();
  // A step counts here once it is made, but the allowed lead counts steps that are begun. So the
  // lead seen here may be one larger.
  EXPECT_EQ(progress_.lead(), GetParam() + 1);
  fast_->set_done();
  fast_->goodbye();
}

TEST_P(SspJob, NobodyWaitsForAWorkerThatIsLost) {
  start();
  std::thread fast = run_fast(GetParam() + 30);
  ASSERT_TRUE(progress_.wait_for_fast(GetParam() + 1));
  slow_.reset();  // without a goodbye
  ASSERT_TRUE(progress_.wait_for_fast(GetParam() + 30));
  fast.join();
  EXPECT_TRUE(wait_said("lost worker:1"));
  fast_->set_done();
  fast_->goodbye();
}

TEST_P(SspJob, AWorkerThatWaitsLongSaysForWhom) {
  make_spec(1, 2);
  start_all_ps();
  FastClock clock;
  PsStoreOptions hurried = options(0);
  hurried.clock = &clock;
  hurried.join_timeout = 24h;
  fast_ = PsStore::join(hurried, variable_w());
  fast_->write(initial_states(variable_w()), 0);
  slow_ = PsStore::join(options(1), variable_w());
  slow_->wait_initialised();
  std::thread fast = run_fast(GetParam() + 2);
  EXPECT_TRUE(wait_said("waits for slower workers: it is " + std::to_string(GetParam() + 1) +
                        " own steps ahead (--staleness)"));
  StepDriver(*slow_, false).step();
  fast.join();
  for (const auto* store : {&fast_, &slow_}) {
    (*store)->set_done();
    (*store)->goodbye();
  }
  fast_.reset();  // before its clock ends
}

class SspTraffic : public JobFixture {};

// With a staleness of 0, others contribute between each of a worker's contributions and its next
// step. So values in the answer to the contribution would be of no use.
TEST_F(SspTraffic, WhereAWorkerAlwaysWaitsValuesComeOnceAStep) {
  make_spec(1, 2);
  start_all_ps();
  const std::vector<VariableSpec> variables = {{.name = "dense", .shape = {256, 64}},
                                               {.name = "rows", .shape = {64, 64}, .sparse = true}};
  std::vector<std::unique_ptr<PsStore>> stores;
  for (const int worker : {0, 1}) {
    PsStoreOptions options = store_options(worker);
    options.aggregation = {AggregationKind::kBounded, 0};
    options.share_memory = false;
    stores.push_back(PsStore::join(options, variables));
    if (worker == 0) stores.front()->write(initial_states(variables), 0);
    stores.back()->wait_initialised();
  }
  std::vector<std::thread> threads;
  threads.reserve(stores.size());
  for (const auto& store : stores) {
    threads.emplace_back([&store] {
      StepDriver driver(*store, false);
      for (std::int64_t step = 0; step < kSlowSteps; ++step) driver.step();
    });
  }
  for (std::thread& thread : threads) thread.join();
  constexpr std::int64_t kDense = 256 * 64 * sizeof(float), kRows = 64 * 64 * sizeof(float);
  for (const auto& store : stores) {
    const std::int64_t received = store->links().front().bytes_received;
    EXPECT_GE(received, kSlowSteps * kDense);
    EXPECT_LE(received, (kSlowSteps + 1) * (kDense + kRows));
    store->set_done();
    store->goodbye();
  }
}

TEST_P(SspJob, AWorkerWithAnotherStrategyIsRefused) {
  make_spec(1, 2);
  start_all_ps();
  fast_ = PsStore::join(options(0), variable_w());
  try {
    PsStore::join(store_options(1), variable_w());
    FAIL() << "it has joined";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("--strategy is ssp with staleness"));
  }
}

}  // namespace
}  // namespace paceline
