#include "params/towers/tower_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <set>
#include <string>

#include "base/testing/error_of.h"

namespace paceline {
namespace {

TEST(TowerThreads, RunAllTowersAtOnceEachOnItsOwnThread) {
  constexpr int kTowers = 4;
  std::mutex mutex;
  std::set<int> begun;
  TowerThreads threads(kTowers,
                       [&](int tower) {
                         const std::lock_guard lock(mutex);
                         begun.insert(tower);
                       },
                       {});
  std::barrier all(kTowers);
  std::vector<std::set<std::thread::id>> seen(kTowers);
  auto work = [&](std::int64_t tower) {
    all.arrive_and_wait();
    seen[std::size_t(tower)].insert(std::this_thread::get_id());
  };
  for (int call = 0; call < 10; ++call) threads.run(TileFunction(work));
  std::set<std::thread::id> different;
  for (const auto& ids : seen) {
    EXPECT_EQ(ids.size(), 1U);
    different.insert(ids.begin(), ids.end());
  }
  EXPECT_EQ(different.size(), std::size_t(kTowers));
  EXPECT_FALSE(different.contains(std::this_thread::get_id()));
  EXPECT_EQ(begun, (std::set<int>{0, 1, 2, 3}));
}

TEST(TowerThreads, LetTheCallerWorkMeanwhile) {
  std::barrier all(3);
  TowerThreads threads(2, {}, {});
  const std::function<void()> meanwhile = [&] {
    all.arrive_and_wait();
    throw Error(ErrorCode::kInternal, "meanwhile");
  };
  std::atomic<int> returned{0};
  auto work = [&](std::int64_t) {
    all.arrive_and_wait();
    ++returned;
  };
  EXPECT_EQ(error_of(ErrorCode::kInternal, [&] { threads.run(TileFunction(work), meanwhile); }),
            "meanwhile");
  EXPECT_EQ(returned, 2) << "all have returned";
}

TEST(TowerThreads, TellOfAFailureAtOnceAndThrowTheFirst) {
  std::atomic<bool> told{false};
  TowerThreads threads(3, {}, [&](const std::exception_ptr&) {
    told = true;
    told.notify_all();
  });
  auto work = [&](std::int64_t tower) {
    if (tower == 1) throw Error(ErrorCode::kInvalidArgument, "the first");
    told.wait(false);
    throw Error(ErrorCode::kInvalidArgument, "a later one");
  };
  EXPECT_EQ(error_of(ErrorCode::kInvalidArgument, [&] { threads.run(TileFunction(work)); }),
            "the first");
  auto nothing = [](std::int64_t) {};
  threads.run(TileFunction(nothing));
}

}  // namespace
}  // namespace paceline
