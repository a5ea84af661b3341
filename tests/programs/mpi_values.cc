// Runs the collectives' tests of values over MPI. Every process that mpirun starts is a member, and
// runs the same tests. tests/mpi_test.cc starts it.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <optional>

#include "base/crc32c.h"
#include "params/collective/mpi_collectives.h"
#include "params/collective/mpi_library.h"
#include "params/testing/reduction_values.h"

namespace paceline {
namespace {

using namespace std::chrono_literals;

class Listener : public ReductionListener {
 public:
  void reduced(std::uint64_t tag) override {
    note([&] { reduced_ = tag; });
  }
  void rested() override {
    note([&] { ++rested_; });
  }
  void failed(const Error& error) override { ADD_FAILURE() << error.what(); }
  bool wait_reduced(std::uint64_t tag) {
    return wait([&] { return reduced_ == tag; });
  }
  bool wait_rested(int times) {
    return wait([&] { return rested_ >= times; });
  }

 private:
  template <typename F>
  void note(F&& change) {
    {
      const std::lock_guard lock(mutex_);
      change();
    }
    changed_.notify_all();
  }
  template <typename F>
  bool wait(F&& holds) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 60s, holds);
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t reduced_ = 0;
  int rested_ = 0;
};

class MpiValues : public ::testing::Test {
 protected:
  MpiValues()
      : calls_(mpi_calls()),
        everyone_(std::size_t(calls_.size())),
        collectives_(values_.variables(), values_.layout(), calls_.rank(), calls_.size(), calls_,
                     listener_) {
    std::iota(everyone_.begin(), everyone_.end(), 0);
  }

  void reduce(int step, const std::vector<std::int32_t>& members) {
    collectives_.begin(values_.buckets());
    collectives_.open(std::uint64_t(step));
    collectives_.start(ReductionValues::group(std::uint64_t(step), members, calls_.rank(), false));
    values_.contribute(collectives_, calls_.rank(), step);
    ASSERT_TRUE(listener_.wait_reduced(std::uint64_t(step)));
    values_.expect_sums(collectives_, members, step);
  }

  // All processes must have the same bits. No process is inside a reduction now, so this thread may
  // call MPI.
  void expect_same_bits() {
    for (std::size_t b = 0; b < values_.buckets()->size(); ++b) {
      const Bucket& bucket = (*values_.buckets())[b];
      if (bucket.sparse) continue;
      const std::vector<float> sum = ReductionValues::sum_of(collectives_, bucket, b);
      const std::uint32_t own = crc32c(std::as_bytes(std::span(sum)));
      std::vector<std::uint32_t> all(everyone_.size());
      calls_.exchange(&own, sizeof own, all.data());
      EXPECT_EQ(std::ranges::count(all, own), std::ptrdiff_t(all.size())) << "bucket " << b;
    }
  }

  const MpiCalls& calls_;
  std::vector<std::int32_t> everyone_;
  const ReductionValues values_;
  Listener listener_;
  MpiCollectives collectives_;
};

TEST_F(MpiValues, EveryMemberHasTheSameSumInEachStep) {
  for (int step = 1; step <= 5; ++step) {
    reduce(step, everyone_);
    expect_same_bits();
  }
}

TEST_F(MpiValues, TheOthersGoOnWithoutOneThatHasLeft) {
  reduce(1, everyone_);
  const std::vector<std::int32_t> others(everyone_.begin(), everyone_.end() - 1);
  if (calls_.rank() == everyone_.back()) return;
  collectives_.rest();
  ASSERT_TRUE(listener_.wait_rested(1));
  reduce(2, others);
}

}  // namespace
}  // namespace paceline

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  const paceline::MpiCalls& calls = paceline::mpi_calls();
  paceline::check_mpi(calls.start(), "start");
  const int status = RUN_ALL_TESTS();
  paceline::check_mpi(calls.end(), "end");
  return status;
}
