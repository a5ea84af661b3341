// Towers over a store of this process, over parameter servers and over accumulation.
#include "params/towers/tower_store.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <string>

#include "base/deadline.h"
#include "base/testing/error_of.h"
#include "kernels/testing/queue_device.h"
#include "params/accumulate/accumulate_store.h"
#include "params/testing/equal_batches.h"
#include "params/towers/tower_threads.h"

namespace paceline {
namespace {

using testing::HasSubstr;

using MakeDevice = std::function<std::unique_ptr<Device>(int tower)>;

std::unique_ptr<Device> cpu(int) {
  static RealClock clock;
  return make_device({.kind = "cpu", .threads = 1}, clock);
}

// The towers of a model over a store. They take the batches in turn.
class Towers {
 public:
  Towers(ParameterStore& below, const LookupModel& model, int towers,
         const MakeDevice& device = cpu)
      : below_(below),
        store_(below, towers, nullptr),
        threads_(towers, {}, [this](const std::exception_ptr& error) { store_.fail(error); }),
        losses_(std::size_t(towers)) {
    for (int i = 0; i < towers; ++i) {
      trainees_.push_back(std::make_unique<Trainee>(store_.of(i), model, device(i), i, towers));
    }
  }
  /// Makes a step of all towers. Returns the mean loss.
  double step() {
    auto work = [this](std::int64_t i) {
      losses_[std::size_t(i)] = trainees_[std::size_t(i)]->step();
    };
    threads_.run(TileFunction(work));
    return std::accumulate(losses_.begin(), losses_.end(), 0.0) / double(losses_.size());
  }
  Trainee& trainee(int tower) { return *trainees_[std::size_t(tower)]; }
  const TowerStore& store() const { return store_; }

 private:
  ParameterStore& below_;
  TowerStore store_;
  std::vector<std::unique_ptr<Trainee>> trainees_;
  TowerThreads threads_;
  std::vector<double> losses_;
};

class TowersOfAModel : public EqualBatches {};

TEST_P(TowersOfAModel, FourOf32TrainAsOneDeviceWith128) {
  const std::shared_ptr<PsStore> far = joined_store();
  const JoinedStrategy whole = joined_alone(specs_), near = joined_alone(specs_);
  Trainee one(*whole.store, large_);
  Towers here(*near.store, small_, 4), there(*far, small_, 4);
  for (int step = 1; step <= 20; ++step) {
    const double loss = one.step(), of_towers = here.step();
    EXPECT_NEAR(of_towers, loss, 1e-5 * loss) << step;
    EXPECT_EQ(there.step(), of_towers) << step;
    EXPECT_EQ(here.trainee(0).global_step(), step);
    EXPECT_EQ(there.trainee(0).global_step(), step);
  }
  EXPECT_EQ(everything(*near.store), everything(*far));
  far->goodbye();
  for (auto& ps : ps_tasks_) EXPECT_EQ(ps.get().applied, 20);
}

INSTANTIATE_TEST_SUITE_P(Rules, TowersOfAModel, ::testing::ValuesIn(equal_batches_cases()),
                         [](const auto& test) { return test.param.name; });

TEST(TowerStore, TwoRunsAreBitEqualWhateverTheOrderOfTheTowers) {
  const LookupModel model(8, Adam{0.01f}, 0.05f);
  const auto run = [&](const MakeDevice& device) {
    const JoinedStrategy below = joined_alone(model.specs());
    Towers towers(*below.store, model, 3, device);
    std::vector<double> losses;
    losses.reserve(20);
    for (int step = 0; step < 20; ++step) losses.push_back(towers.step());
    return std::pair(losses, everything(*below.store));
  };
  const auto queue = [](int tower) {
    return std::make_unique<QueueDevice>(
        cpu(tower), tower == 1 ? QueueDevice::Pace::kWhenWaitedFor : QueueDevice::Pace::kAtOnce);
  };
  const auto first = run(cpu);
  EXPECT_EQ(run(cpu), first);
  EXPECT_EQ(run(queue), first) << "devices that are behind the host, with memory of their own";
}

TEST(TowerStore, OverAccumulationTrainsAsTheProductOfBoth) {
  const LookupModel model(8, Sgd{.learning_rate = 0.5f}, 0.05f),
      large(32, Sgd{.learning_rate = 0.5f}, 0.05f);
  const JoinedStrategy below = accumulate(joined_alone(model.specs()), 2, nullptr),
                       whole = joined_alone(model.specs());
  Towers towers(*below.store, model, 2);
  Trainee one(*whole.store, large);
  for (int step = 1; step <= 10; ++step) {
    const double loss = one.step();
    const double first = towers.step(), second = towers.step();
    EXPECT_NEAR((first + second) / 2, loss, 1e-5 * loss) << step;
    EXPECT_EQ(towers.trainee(0).global_step(), step);
  }
}

TEST(TowerStore, TheNormIsThatOfTheMean) {
  const Rule rule = Sgd{.learning_rate = 0.5f};
  const LookupModel small(8, rule, 0.05f), large(16, rule, 0.05f), unclipped(8, rule, 0);
  const JoinedStrategy below = joined_alone(small.specs()), other = joined_alone(small.specs()),
                       whole = joined_alone(small.specs());
  Towers towers(*below.store, small, 2), free(*other.store, unclipped, 2);
  Trainee one(*whole.store, large);
  for (int step = 0; step < 3; ++step) {
    towers.step();
    free.step();
    one.step();
    ASSERT_TRUE(towers.store().norm(0).has_value());
    EXPECT_NEAR(*towers.store().norm(0), one.norm(), 1e-5 * one.norm());
    EXPECT_FALSE(free.store().norm(0).has_value());
  }
}

// Whichever tower fails, the other towers already wait for it, or will wait for it.
TEST(TowerStore, TheErrorOfOneTowerEndsTheStepOfAll) {
  const LookupModel model(8, Sgd{.learning_rate = 0.5f}, 0);
  for (int failing = 0; failing < 3; ++failing) {
    const JoinedStrategy below = joined_alone(model.specs());
    Towers towers(*below.store, model, 3);
    towers.step();
    towers.trainee(failing).id_offset = 1000;
    for (int again = 0; again < 2; ++again) {
      EXPECT_THAT(error_of(ErrorCode::kInvalidArgument, [&] { towers.step(); }),
                  HasSubstr("is outside [0,20)"));
    }
    EXPECT_EQ(below.store->global_step(), 1);
  }
}

// Sleeps until as many threads sleep at once as there are devices.
class GatheringClock : public RealClock {
 public:
  explicit GatheringClock(int devices) : devices_(devices) {}
  void sleep_until(TimePoint) override {
    std::unique_lock lock(mutex_);
    most_ = std::max(most_, ++sleeping_);
    changed_.notify_all();
    changed_.wait_for(lock, std::chrono::seconds(30), [&] { return most_ >= devices_; });
    --sleeping_;
  }
  int most_at_once() {
    const std::lock_guard lock(mutex_);
    return most_;
  }

 private:
  const int devices_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int sleeping_ = 0, most_ = 0;
};

TEST(TowerStore, SimulatedDevicesAreBusyAtOnce) {
  constexpr int kTowers = 4;
  GatheringClock clock(kTowers);
  const LookupModel model(8, Sgd{.learning_rate = 0.5f}, 0);
  const JoinedStrategy below = joined_alone(model.specs());
  Towers towers(*below.store, model, kTowers, [&](int tower) {
    return make_device({.kind = "sim", .index = tower, .sim_step_ms = 1e6}, clock);
  });
  towers.step();
  EXPECT_EQ(clock.most_at_once(), kTowers);
}

}  // namespace
}  // namespace paceline
