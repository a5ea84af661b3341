#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/allocation_scope.h"
#include "base/denormals.h"
#include "paceline/error.h"

namespace paceline {
namespace {

class ThreadPoolTest : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolTest, testing::Values(1, 2, 3, 8));

TEST_P(ThreadPoolTest, RunsEveryTileOnce) {
  ThreadPool pool(GetParam());
  for (std::int64_t tiles : {0, 1, 2, 3, 7, 64, 1000}) {
    std::vector<std::atomic<int>> runs(std::size_t(tiles) + 1);
    auto tile = [&](std::int64_t i) { ++runs[std::size_t(i)]; };
    pool.run_tiles(tiles, TileFunction(tile));
    for (std::int64_t i = 0; i < tiles; ++i) ASSERT_EQ(runs[std::size_t(i)], 1) << i;
    EXPECT_EQ(runs.back(), 0);
  }
}

TEST_P(ThreadPoolTest, TilesHaveEndedWhenTheCallReturns) {
  ThreadPool pool(GetParam());
  std::vector<int> values(16);
  for (int round = 1; round <= 5000; ++round) {
    auto tile = [&](std::int64_t i) { values[std::size_t(i)] += 1; };
    pool.run_tiles(16, TileFunction(tile));
    ASSERT_TRUE(std::ranges::all_of(values, [&](int value) { return value == round; })) << round;
  }
}

TEST_P(ThreadPoolTest, ThrowsWhatATileThrowsAndGoesOn) {
  ThreadPool pool(GetParam());
  for (int round = 0; round < 200; ++round) {
    auto bad = [](std::int64_t i) {
      if (i == 5) throw std::runtime_error("tile 5");
    };
    try {
      pool.run_tiles(20, TileFunction(bad));
      FAIL();
    } catch (const std::runtime_error& error) {
      ASSERT_STREQ(error.what(), "tile 5");
    }
    std::atomic<int> runs = 0;
    auto good = [&](std::int64_t) { ++runs; };
    pool.run_tiles(20, TileFunction(good));
    ASSERT_EQ(runs, 20);
  }
}

TEST_P(ThreadPoolTest, ParallelForCoversTheRangeOnce) {
  ThreadPool pool(GetParam());
  for (std::int64_t n : {0, 1, 2, 99, 100, 101, 4096, 10007}) {
    for (std::int64_t grain : {1, 7, 100, 100000}) {
      std::vector<std::atomic<int>> seen((std::size_t(n)));
      pool.parallel_for(n, grain, [&](std::int64_t begin, std::int64_t end) {
        EXPECT_LE(begin, end);
        for (std::int64_t i = begin; i < end; ++i) ++seen[std::size_t(i)];
      });
      ASSERT_TRUE(std::ranges::all_of(seen, [](const auto& count) { return count == 1; }))
          << n << " by " << grain;
    }
  }
}

TEST(ThreadPool, OneThreadRunsInTheCallerAndInOrder) {
  ThreadPool pool(1);
  std::vector<std::int64_t> order;
  const std::thread::id caller = std::this_thread::get_id();
  auto tile = [&](std::int64_t i) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    order.push_back(i);
  };
  pool.run_tiles(4, TileFunction(tile));
  EXPECT_EQ(order, (std::vector<std::int64_t>{0, 1, 2, 3}));
}

// A job of little work stays with the caller, since waking a thread costs more.
TEST(ThreadPool, NoMoreThanOneGrainStaysWithTheCaller) {
  ThreadPool pool(3);
  const std::thread::id caller = std::this_thread::get_id();
  int calls = 0;
  pool.parallel_for(100, 100, [&](std::int64_t begin, std::int64_t end) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_EQ(begin, 0);
    EXPECT_EQ(end, 100);
    ++calls;
  });
  EXPECT_EQ(calls, 1);
}

TEST(ThreadPool, OtherThreadsTakePart) {
  ThreadPool pool(2);
  // Tile 0 ends only when tile 1 has begun, so two threads must run at once.
  std::atomic<bool> begun{false};
  auto tile = [&](std::int64_t i) {
    if (i == 0) begun.wait(false);
    if (i == 1) {
      begun = true;
      begun.notify_all();
    }
  };
  pool.run_tiles(2, TileFunction(tile));
  EXPECT_TRUE(begun);
}

constexpr std::chrono::milliseconds kLongerThanAnyoneSpins{5};

TEST(ThreadPool, SleepingThreadsAreWoken) {
  ThreadPool pool(3);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(kLongerThanAnyoneSpins);
    // No tile ends before all have begun, so each needs a thread.
    std::barrier begun(3);
    auto tile = [&](std::int64_t) { begun.arrive_and_wait(); };
    pool.run_tiles(3, TileFunction(tile));
  }
}

TEST(ThreadPool, TheCallerSleepsUntilTheLastTileEnds) {
  ThreadPool pool(2);
  const std::thread::id caller = std::this_thread::get_id();
  for (int round = 0; round < 5; ++round) {
    std::barrier begun(2);
    std::atomic<int> ended{0};
    auto tile = [&](std::int64_t) {
      begun.arrive_and_wait();
      if (std::this_thread::get_id() != caller) std::this_thread::sleep_for(kLongerThanAnyoneSpins);
      ++ended;
    };
    pool.run_tiles(2, TileFunction(tile));
    EXPECT_EQ(ended, 2);
  }
}

TEST(ThreadPool, ItsThreadsComputeAsACallerThatFlushesDenormals) {
  ThreadPool pool(3);
  std::vector<float> products(3, -1.0f);
  std::barrier begun(3);
  auto tile = [&](std::int64_t i) {
    begun.arrive_and_wait();
    const volatile float small = 1e-30f;
    products[std::size_t(i)] = small * 1e-10f;
  };
  {
    const FlushDenormals flush;
    pool.run_tiles(3, TileFunction(tile));
  }
  EXPECT_EQ(products, std::vector<float>(3, 0.0f));
}

TEST_P(ThreadPoolTest, RunsEveryTileOnceByPartsToo) {
  ThreadPool pool(GetParam());
  for (const std::int64_t tiles : {0, 1, 2, 3, 7, 64, 1000}) {
    for (const bool backwards : {false, true}) {
      std::vector<std::atomic<int>> runs(std::size_t(tiles) + 1);
      auto tile = [&](std::int64_t i) { ++runs[std::size_t(i)]; };
      pool.run_own_tiles(tiles, backwards, TileFunction(tile));
      for (std::int64_t i = 0; i < tiles; ++i) ASSERT_EQ(runs[std::size_t(i)], 1) << i;
    }
  }
}

TEST(ThreadPool, EachThreadBeginsWithItsOwnPart) {
  ThreadPool pool(3);
  std::vector<std::thread::id> owners(3);
  for (int round = 0; round < 20; ++round) {
    const bool backwards = round % 2 == 1;
    // The first tile of each part ends only when the first tiles of all parts have begun.
    std::barrier begun(3);
    auto tile = [&](std::int64_t i) {
      if ((i % 2 == 1) != backwards) return;
      begun.arrive_and_wait();
      std::thread::id& owner = owners[std::size_t(i / 2)];
      if (round == 0) owner = std::this_thread::get_id();
      EXPECT_EQ(owner, std::this_thread::get_id()) << round << ' ' << i;
    };
    pool.run_own_tiles(6, backwards, TileFunction(tile));
  }
  EXPECT_EQ(owners[0], std::this_thread::get_id());
}

TEST(ThreadPool, OneThreadRunsBackwardsInTheCaller) {
  ThreadPool pool(1);
  std::vector<std::int64_t> order;
  auto tile = [&](std::int64_t i) { order.push_back(i); };
  pool.run_own_tiles(3, true, TileFunction(tile));
  EXPECT_EQ(order, (std::vector<std::int64_t>{2, 1, 0}));
}

TEST(ThreadPool, LessThanOneThreadIsOne) { EXPECT_EQ(ThreadPool(0).threads(), 1); }

/// Lets this process map `more` bytes of address space beyond those that it has.
void limit_address_space(std::uint64_t more) {
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t most = pages * std::uint64_t(::sysconf(_SC_PAGESIZE)) + more;
  const rlimit limit{most, most};
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &limit), 0);
}

// Stacks take 2 or 8 MB each, so some of the threads start and the others cannot.
TEST(ThreadPool, ThreadsThatCannotBeStartedAreAnError) {
  if (!allocations_are_counted()) GTEST_SKIP() << "a sanitizer needs the address space";
  EXPECT_EXIT(
      {
        limit_address_space(std::uint64_t{64} << 20);
        try {
          const ThreadPool pool(1000);
        } catch (const Error& error) {
          std::cerr << error.what();
          _exit(error.code() == ErrorCode::kUnavailable ? 0 : 1);
        }
        _exit(2);
      },
      testing::ExitedWithCode(0), "1000 threads cannot be started: ");
}

TEST(ThreadPool, RunningAllocatesNothing) {
  if (!allocations_are_counted()) GTEST_SKIP() << "a sanitizer owns malloc";
  ThreadPool pool(3);
  std::atomic<int> runs = 0;
  auto tile = [&](std::int64_t) { ++runs; };
  pool.run_tiles(100, TileFunction(tile));
  const std::int64_t before = allocation_counts().ours;
  for (int i = 0; i < 100; ++i) pool.run_tiles(100, TileFunction(tile));
  EXPECT_EQ(allocation_counts().ours, before);
  EXPECT_EQ(runs, 10100);
}

}  // namespace
}  // namespace paceline
