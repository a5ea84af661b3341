// Tests the reduction among several workers of one process: in a ring, and in place in shared
// memory.
#include "params/collective/collectives.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <numeric>
#include <thread>

#include "base/deadline.h"
#include "base/philox.h"
#include "params/collective/link_collectives.h"
#include "params/testing/reduction_values.h"

namespace paceline {
namespace {

using namespace std::chrono_literals;

// Hands frames to one of the workers of this process, one after another, in a thread of its own.
class FrameCourier {
 public:
  using Arrived = std::function<void(int from, const FrameHeader&, std::span<const std::byte>)>;
  explicit FrameCourier(Arrived arrived)
      : arrived_(std::move(arrived)), thread_([this] { run(); }) {}
  ~FrameCourier() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  void put(int from, const FrameHeader& header, std::span<const std::byte> payload) {
    {
      const std::lock_guard lock(mutex_);
      frames_.push_back({from, header, {payload.begin(), payload.end()}});
    }
    changed_.notify_all();
  }

 private:
  struct Frame {
    int from;
    FrameHeader header;
    std::vector<std::byte> payload;
  };
  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stopped_ || !frames_.empty(); });
      if (stopped_) return;
      const Frame frame = std::move(frames_.front());
      frames_.pop_front();
      lock.unlock();
      arrived_(frame.from, frame.header, frame.payload);
      lock.lock();
    }
  }

  const Arrived arrived_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Frame> frames_;
  bool stopped_ = false;
  std::thread thread_;
};

class TestWorker : public PeerSender, public ReductionListener {
 public:
  TestWorker(std::span<const VariableSpec> variables, const ContributionLayout& layout, int worker,
             std::vector<std::unique_ptr<TestWorker>>& all, int workers)
      : worker_(worker),
        all_(all),
        collectives(variables, layout, worker, workers, *this, *this),
        courier_([this](int from, const FrameHeader& header, std::span<const std::byte> payload) {
          collectives.arrived(from, header, payload);
        }) {}

  void send(int to, const FrameHeader& header, std::span<const std::byte> payload,
            void (*sent)(void*), void* context) override {
    all_[std::size_t(to)]->courier_.put(worker_, header, payload);
    sent(context);
  }
  void send_copy(int to, const FrameHeader& header, std::span<const std::byte> payload) override {
    all_[std::size_t(to)]->courier_.put(worker_, header, payload);
  }
  void reduced(std::uint64_t tag) override { note(reduced_, tag); }
  void rested() override { note(rested_, rested_ + 1); }
  void failed(const Error& error) override { ADD_FAILURE() << error.what(); }
  bool wait_reduced(std::uint64_t tag) {
    return wait([&] { return reduced_ == tag; });
  }
  bool has_reduced(std::uint64_t tag) {
    const std::lock_guard lock(mutex_);
    return reduced_ == tag;
  }
  bool wait_rested(std::uint64_t times) {
    return wait([&] { return rested_ >= times; });
  }

 private:
  void note(std::uint64_t& number, std::uint64_t value) {
    {
      const std::lock_guard lock(mutex_);
      number = value;
    }
    changed_.notify_all();
  }
  template <typename F>
  bool wait(F&& holds) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 30s, holds);
  }

  const int worker_;
  std::vector<std::unique_ptr<TestWorker>>& all_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t reduced_ = 0, rested_ = 0;

 public:
  LinkCollectives collectives;

 private:
  FrameCourier courier_;
};

struct Case {
  int workers;
  bool in_place;
};

class CollectivesTest : public ::testing::TestWithParam<Case> {
 protected:
  CollectivesTest() {
    for (int w = 0; w < GetParam().workers; ++w) {
      workers_.push_back(nullptr);
      workers_.back() = std::make_unique<TestWorker>(values_.variables(), values_.layout(), w,
                                                     workers_, GetParam().workers);
    }
    for (const auto& to : workers_) {
      for (int from = 0; from < GetParam().workers; ++from) {
        const LinkCollectives& shared = workers_[std::size_t(from)]->collectives;
        to->collectives.take_memory(from, 0, shared.contributions());
        to->collectives.take_memory(from, 1, shared.sums());
      }
    }
  }

  LinkCollectives& collectives_of(int worker) { return workers_[std::size_t(worker)]->collectives; }
  void begin_all() {
    for (const auto& worker : workers_) worker->collectives.begin(values_.buckets());
  }
  void contribute(int worker) { values_.contribute(collectives_of(worker), worker, int(step_)); }
  void open_and_start(std::uint64_t tag, const std::vector<std::int32_t>& members) {
    for (const std::int32_t member : members) collectives_of(member).open(tag);
    for (const std::int32_t member : members) {
      collectives_of(member).start(
          ReductionValues::group(tag, members, member, GetParam().in_place));
    }
  }
  void expect_sums(const std::vector<std::int32_t>& members) {
    for (const std::int32_t member : members) {
      values_.expect_sums(collectives_of(member), members, int(step_));
      for (std::size_t b = 0; b < values_.buckets()->size(); ++b) {
        const Bucket& bucket = (*values_.buckets())[b];
        if (bucket.sparse) continue;
        ASSERT_EQ(ReductionValues::sum_of(collectives_of(member), bucket, b),
                  ReductionValues::sum_of(collectives_of(members.front()), bucket, b))
            << "bucket " << b << " of worker " << member;
      }
    }
  }
  std::vector<std::int32_t> everyone() const {
    std::vector<std::int32_t> members(std::size_t(GetParam().workers));
    std::iota(members.begin(), members.end(), 0);
    return members;
  }

  const ReductionValues values_;
  std::vector<std::unique_ptr<TestWorker>> workers_;
  std::uint64_t step_ = 0;
};

TEST_P(CollectivesTest, EveryMemberHasTheSameSumInEachStep) {
  for (step_ = 1; step_ <= 5; ++step_) {
    begin_all();
    open_and_start(step_, everyone());
    std::vector<std::thread> threads;
    for (const std::int32_t w : everyone()) {
      threads.emplace_back([this, w] { contribute(w); });
    }
    for (std::thread& thread : threads) thread.join();
    for (const auto& worker : workers_) ASSERT_TRUE(worker->wait_reduced(step_));
    expect_sums(everyone());
  }
}

TEST_P(CollectivesTest, AStepIsReducedAgainFromWhatWasContributed) {
  begin_all();
  open_and_start(1, everyone());
  const std::vector<std::int32_t> members = everyone();
  for (std::size_t i = 0; i + 1 < members.size(); ++i) contribute(members[i]);
  const std::vector<std::int32_t> living(members.begin(), members.end() - 1);
  for (const std::int32_t w : living) workers_[std::size_t(w)]->collectives.rest();
  for (const std::int32_t w : living) ASSERT_TRUE(workers_[std::size_t(w)]->wait_rested(1));
  open_and_start(2, living);
  for (const std::int32_t w : living) ASSERT_TRUE(workers_[std::size_t(w)]->wait_reduced(2));
  expect_sums(living);
}

TEST_P(CollectivesTest, FramesOfAnotherAttemptChangeNothing) {
  begin_all();
  open_and_start(1, everyone());
  for (const std::int32_t w : everyone()) contribute(w);
  for (const auto& worker : workers_) ASSERT_TRUE(worker->wait_reduced(1));
  const std::vector<std::byte> garbage(64, std::byte{0x7f});
  FrameHeader header{.payload_bytes = 64, .type = 60, .id = 0, .step = 77};
  workers_.front()->collectives.arrived(GetParam().workers - 1, header, garbage);
  expect_sums(everyone());
}

TEST_P(CollectivesTest, AFrameThatMakesNoSenseIsRefused) {
  begin_all();
  open_and_start(1, everyone());
  LinkCollectives& collectives = workers_.front()->collectives;
  const int from = GetParam().workers - 1;
  const std::vector<std::byte> bytes(12);
  const auto refused = [&](FrameHeader header) {
    header.payload_bytes = 12;
    header.step = 1;
    EXPECT_THROW(collectives.arrived(from, header, bytes), Error)
        << header.type << " " << header.id;
  };
  refused({.type = 60, .id = 99});
  refused({.type = 60, .id = 0, .offset = 2});
  refused({.type = 60, .id = 0, .offset = ~std::uint64_t{0} - 3});
  refused({.type = 60, .flags = 1, .id = 0});
  refused({.type = 61, .id = 0, .offset = 1});
  const std::size_t sparse = std::size_t(
      std::ranges::find(*values_.buckets(), true, &Bucket::sparse) - values_.buckets()->begin());
  refused({.type = 61, .id = std::uint32_t(sparse), .offset = ~std::uint64_t{0} / 4});
  refused({.type = 62, .id = std::uint32_t(sparse), .offset = 101});
  for (const auto& worker : workers_) worker->collectives.rest();
  for (const auto& worker : workers_) ASSERT_TRUE(worker->wait_rested(1));
}

INSTANTIATE_TEST_SUITE_P(Groups, CollectivesTest,
                         ::testing::Values(Case{2, false}, Case{3, false}, Case{5, false},
                                           Case{2, true}, Case{4, true}),
                         [](const auto& info) {
                           return std::to_string(info.param.workers) +
                                  (info.param.in_place ? "InPlace" : "InARing");
                         });

TEST(Buckets, SmallVariablesThatLieSideBySideShareOne) {
  const std::vector<VariableSpec> variables = {{.name = "a", .shape = {8}},
                                               {.name = "frozen", .shape = {8}, .trained = false},
                                               {.name = "b", .shape = {8}},
                                               {.name = "c", .shape = {8}}};
  const ContributionLayout layout(variables);
  PlanBinding plan;
  for (const VariableId v : {0, 2, 3}) plan.uses.push_back({.variable = v, .updated = true});
  const std::vector<Bucket> buckets = buckets_of(variables, layout, plan);
  ASSERT_EQ(buckets.size(), 2u);
  EXPECT_EQ(buckets[1].variables, (std::vector<VariableId>{2, 3}));
  EXPECT_EQ(buckets[1].elements, 16u + 8u);
}

}  // namespace
}  // namespace paceline
